import type { Ask, LineSummary, Store } from '@sluice/core'
import { escapeControls } from '../render/escape.ts'
import { askedBy, questionLines } from '../render/question.ts'
import { asksOf } from '../store/line.ts'
import { continueCommand, resumeCommand } from './again.ts'
import { YOURS } from './answers.ts'
import type { OnThread } from './thread-flags.ts'

/** How a thread goes on from where it stands: its open questions and the command that answers them, or the one that continues it. */
export async function wayOn(
  store: Store,
  on: OnThread,
  call: readonly string[],
  now: number,
): Promise<readonly string[]> {
  const line = (await store.lines(on.thread)).find(({ branch }) => branch === on.branch)
  if (line === undefined || line.busy || line.status === 'completed') return []
  if (line.status === 'paused') return answering(on, call, asksOf(line), now)
  if (await isStuck(store, line)) return []
  return ['What was done is kept. To go on from there:', `  ${continueCommand(call, on)}`]
}

function answering(on: OnThread, call: readonly string[], asks: readonly Ask[], now: number): readonly string[] {
  const open = asks.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > now)
  const keys = open.map(({ key }) => key)
  const mend =
    keys.length === 0
      ? ['Nobody answered in time. To go on without:', `  ${continueCommand(call, on)}`]
      : [`To answer, with JSON in the place of "${YOURS}":`, `  ${resumeCommand(call, on, keys)}`]
  return [...asks.flatMap((ask) => asLines(ask, now)), ...mend]
}

const asLines = (ask: Ask, now: number): readonly string[] => [
  `  ? ${escapeControls(ask.key)}  asked by ${askedBy(ask, now)}`,
  ...questionLines(ask, now).map((text) => `      ${text}`),
]

/** Whether going on would come to the same: its updates cannot be merged. */
async function isStuck(store: Store, { thread, branch, head }: LineSummary): Promise<boolean> {
  const [last] = await store.read({ thread, branch }, { from: head })
  return last !== undefined && (JSON.parse(last.text) as { stuck?: boolean }).stuck === true
}
