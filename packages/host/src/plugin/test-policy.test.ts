import { type Half, SEAMS, type Seam } from '@sluice/core'
import { type PolicyHandlers, type PolicyTest, testPolicy } from '@sluice/plugin'
import { describe, expect, it } from 'vitest'
import { readVerdict } from '../../../core/src/seams/verdict.ts'

const long = 'x'.repeat(1_025)
const ANSWERS: readonly unknown[] = [
  null,
  'ok',
  [],
  {},
  ...['proceed', 'pass', 'modify', 'replace', 'reject', 'fail', 'suspend', 'retry', 'allow', ''].map((action) => ({
    action,
  })),
  { action: 'modify', input: {} },
  { action: 'replace', value: null },
  ...['', ' ', 'no', 3].flatMap((reason) => ['reject', 'fail'].map((action) => ({ action, reason }))),
  ...[0, 10, -1, '5', null].map((delayMs) => ({ action: 'retry', delayMs })),
  ...[
    {},
    'why',
    { onAnswer: 'result' },
    { onAnswer: 'input' },
    { schema: {} },
    { schema: 'boolean' },
    { expiresInMs: 1 },
    { expiresInMs: 0 },
    { onAnswer: null, schema: null, expiresInMs: null },
  ].map((ask) => ({ action: 'suspend', ask })),
  ...[
    { code: 'c' },
    { code: 3 },
    { code: long },
    { code: 'sluice:mine' },
    { warnings: ['w'] },
    { warnings: 'w' },
    { labels: ['a'] },
    { labels: Array.from({ length: 17 }, () => 'a') },
    { labels: [long] },
    { annotations: { a: 'b' } },
    { annotations: { a: 1 } },
    { annotations: [] },
    { annotations: { [long]: 'b' } },
  ].flatMap((remarks) => ['proceed', 'pass'].map((action) => ({ action, ...remarks }))),
]

const halves = Object.entries(SEAMS).flatMap(([seam, row]) =>
  (['before', 'after'] as const).flatMap((half) => (row[half].length === 0 ? [] : [{ seam: seam as Seam, half }])),
)

describe('what authors are told of a verdict', () => {
  it.each(halves)('is what the gate says of it, at $seam.$half', async ({ seam, half }) => {
    for (const answer of ANSWERS)
      expect([answer, await passesTheKit(seam, half, answer)]).toEqual([answer, passesTheGate(seam, half, answer)])
  })
})

function passesTheGate(seam: Seam, half: Half, answer: unknown): boolean {
  try {
    return readVerdict(seam, half, answer) !== undefined
  } catch {
    return false
  }
}

const passesTheKit = (seam: Seam, half: Half, answer: unknown) =>
  testPolicy(
    { [seam]: { [half]: () => answer } } as PolicyHandlers,
    {
      seam,
      ...(half === 'before' ? { input: {} } : { outcome: { ok: true, value: {} } }),
    } as PolicyTest,
  ).then(
    () => true,
    () => false,
  )
