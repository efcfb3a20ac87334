import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Clock } from '../../testing/clock.ts'
import { type Answer, says } from '../../testing/play.ts'
import { digestOf } from '../json/digest.ts'
import type { Json } from '../json/json.ts'
import { own } from '../json/own.ts'
import { Call, type SeamSpec } from './call.ts'
import { compileGate } from './gate.ts'
import { type CallKind, Entry, Journal, type Ledger, type Trip } from './journal.ts'
import { KeptValues } from './kept.ts'
import type { Policy } from './policy.ts'
import { Shadows } from './shadow.ts'
import type { Site } from './site.ts'

/** A run as far as a gate needs one. */
function site() {
  const stops: unknown[] = []
  const platform = new Clock()
  const made: Site & { stopped: boolean } = {
    stopped: false,
    signal: new AbortController().signal,
    timers: platform,
    labels: new Set(),
    kept: new KeptValues(),
    consultations: new Set(),
    stop: (error) => {
      stops.push(error)
      made.stopped = true
    },
    warn: () => undefined,
    note: () => undefined,
    decided: () => undefined,
    consulted: () => undefined,
    decisions: undefined,
    shadows: new Shadows(),
    beside: () => made,
    emitFrom: () => undefined,
    logFrom: () => undefined,
    callModelFrom: () => Promise.reject(new Error('no model here')),
    runToolFrom: () => Promise.reject(new Error('no tool here')),
  }
  return { site: made, stops, platform }
}

const GIVEN = own({ text: 'x' })
const failure = new Error('the step fails')

/** One call about this entry, past these policies; how often the step is performed is `performed`. */
function play(entry: Entry, policies: readonly Policy[], step: (input: Json) => Json = () => 'made', maxAttempts = 1) {
  const run = site()
  const performed: Json[] = []
  const spec: SeamSpec<Json, Json> = {
    seam: maxAttempts === 1 ? 'toolCall' : 'modelCall',
    perform: (call) => {
      performed.push(call.input)
      return step(call.input)
    },
  }
  const call = new Call(run.site, { nodeName: 'step', toolName: 'act' }, GIVEN, { entry, maxAttempts })
  const outcome = Promise.resolve()
    .then(() => compileGate(spec, policies)(call))
    .then(
      (value) => ({ value }),
      (error) => ({ error }),
    )
  return { ...run, call, outcome, performed }
}

const newEntry = () => new Entry('tool', 'act', GIVEN)
const both = (before: Answer, after: Answer) => says('Both', { 'toolCall.before': before, 'toolCall.after': after })
const proceed = { action: 'proceed' }
const pass = { action: 'pass' }

describe.each([
  { name: 'with policies', policies: () => [both(proceed, pass)] },
  { name: 'with nobody to consult', policies: () => [] },
])('a call that is settled, $name', ({ policies }) => {
  it('hands back its value: nothing runs, and nobody is consulted', async () => {
    const entry = newEntry()
    entry.settle({ ok: true, value: 'settled before' })
    const asked = policies()
    const { outcome, performed } = play(entry, asked)
    expect(await outcome).toEqual({ value: 'settled before' })
    expect(performed).toEqual([])
    expect(asked.flatMap((policy) => policy.asked)).toEqual([])
  })

  it('hands back the very error it ended with', async () => {
    const entry = newEntry()
    entry.settle({ ok: false, error: failure })
    expect(((await play(entry, policies()).outcome) as { error: unknown }).error).toBe(failure)
  })

  it('is settled by its first run, once and for all', async () => {
    const entry = newEntry()
    await play(entry, policies()).outcome
    const again = play(entry, policies(), () => 'made again')
    expect(await again.outcome).toEqual({ value: 'made' })
    expect(again.performed).toEqual([])
  })
})

describe('a refusal settles its call', () => {
  it('and is handed back without asking the policy again', async () => {
    const entry = newEntry()
    const gate = says('Gate', { 'toolCall.before': { action: 'reject', reason: 'no' } })
    const first = (await play(entry, [gate]).outcome) as { error: unknown }
    const second = (await play(entry, [gate]).outcome) as { error: unknown }
    expect(first.error).toMatchObject({ code: 'REFUSED' })
    expect(second.error).toBe(first.error)
    expect(gate.asked).toHaveLength(1)
  })
})

describe('a trip that has its raw outcome, and nobody judged it', () => {
  const started = (outcome: { ok: true; value: Json } | undefined, given: Json = GIVEN) => {
    const entry = newEntry()
    const trip = entry.start(1, 1, given, own({ text: 'as the policies left it' })) as Trip
    trip.outcome = outcome
    return entry
  }

  it('is judged by after, with the input that ran; it is not performed again, and before is not asked', async () => {
    const policy = both(proceed, pass)
    const { outcome, performed } = play(started({ ok: true, value: 'raw' }), [policy])
    expect(await outcome).toEqual({ value: 'raw' })
    expect(performed).toEqual([])
    expect(policy.asked).toMatchObject([
      { at: 'toolCall.after', input: { text: 'as the policies left it' }, outcome: { ok: true, value: 'raw' } },
    ])
  })

  it.each([
    { name: 'a call whose input is another one', entry: () => started({ ok: true, value: 'raw' }, own({ text: 'y' })) },
    { name: 'a trip whose outcome is not known', entry: () => started(undefined) },
  ])('is made anew for $name', async ({ entry }) => {
    const policy = both(proceed, pass)
    const { outcome, performed } = play(entry(), [policy])
    expect(await outcome).toEqual({ value: 'made' })
    expect(performed).toEqual([GIVEN])
    expect(policy.asked.map(({ at }) => at)).toEqual(['toolCall.before', 'toolCall.after'])
  })

  it('is written before anybody judges it', async () => {
    const entry = newEntry()
    let written: unknown
    const judge = says('Judge', {
      'toolCall.after': () => {
        written = entry.made(1, 1, GIVEN)?.outcome
        return pass
      },
    })
    await play(entry, [judge]).outcome
    expect(written).toEqual({ ok: true, value: 'made' })
  })

  it.each([
    {
      name: 'a policy that failed',
      answer: () => {
        throw new Error('it broke')
      },
    },
    { name: 'a fail that stops the run', answer: { action: 'fail', reason: 'no' } },
  ])('stays unsettled after $name, and the run that settles it judges it by its own policies', async ({ answer }) => {
    const entry = newEntry()
    const stopped = play(entry, [both(proceed, answer)])
    await Promise.race([stopped.outcome, stopped.platform.turn()])
    expect(stopped.stops).toHaveLength(1)
    expect(entry.settled).toBeUndefined()
    const again = play(entry, [both(proceed, { action: 'replace', value: 'judged' })])
    expect(await again.outcome).toEqual({ value: 'judged' })
    expect(again.performed).toEqual([])
  })
})

describe('a granted retry', () => {
  const retry = (answer: object) => says('RetryPolicy', { 'modelCall.after': answer })

  it('is written before its wait, and a call entered anew goes on at the new attempt', async () => {
    const entry = newEntry()
    const waiting = play(entry, [retry({ action: 'retry', delayMs: 1_000 })], undefined, 3)
    await waiting.platform.pass(999)
    expect(entry.attempt).toBe(2)
    expect(waiting.performed).toHaveLength(1)
    const policy = retry(pass)
    const again = play(entry, [policy], undefined, 3)
    expect(await again.outcome).toEqual({ value: 'made' })
    expect(again.performed).toHaveLength(1)
    expect(policy.asked.map(({ attempt }) => attempt)).toEqual([2])
  })

  it('counts on from there: no attempt is had twice', async () => {
    const entry = newEntry()
    entry.retry(3)
    const policy = retry({ action: 'retry' })
    const { outcome, performed } = play(entry, [policy], undefined, 3)
    expect(await outcome).toEqual({ value: 'made' })
    expect(performed).toHaveLength(1)
  })
})

describe('a result that a policy withheld', () => {
  it.each([
    { name: 'by replacing it', answer: { action: 'replace', value: 'redacted' } },
    { name: 'by refusing it', answer: { action: 'reject', reason: 'no' } },
  ])('stands nowhere once the call is settled: $name', async ({ answer }) => {
    const entry = newEntry()
    await play(entry, [both(proceed, answer)], () => 'the secret').outcome
    expect(JSON.stringify(entry)).not.toContain('the secret')
    expect(entry.made(1, 1, GIVEN)).toBeUndefined()
  })
})

/** A ledger in memory; what a call that the journal does not have comes to is `diverged`. */
function ledger() {
  const diverged: string[] = []
  const made: Ledger = {
    digest: (_kind, value) => digestOf(value),
    note: () => undefined,
    settled: () => undefined,
    turn: () => new Promise((resolve) => setImmediate(resolve)),
    diverged: (kind, name) => {
      diverged.push(`${kind} ${name}`)
      return new Promise(() => undefined)
    },
  }
  return { ledger: made, diverged }
}

describe('the journal of an execution', () => {
  const input = (text: string) => own({ text })
  type Made = readonly [kind: CallKind, name: string, text: string]

  /** What a journal makes of these calls when those were read back: for each the place of the entry it got. */
  async function replay(recorded: readonly Made[], calls: readonly Made[]) {
    const { ledger: at, diverged } = ledger()
    const first = new Journal(at)
    const written = recorded.map(([kind, name, text]) => first.enter(kind, name, input(text)) as Entry)
    const read = written.map(
      ({ kind, name, ordinal, order, digest }) =>
        new Entry(kind, name, undefined, ordinal, order, at, { digest, order, settled: { ok: true, value: order } }),
    )
    const journal = new Journal(at, read)
    const entered = await Promise.race([
      Promise.all(calls.map(([kind, name, text]) => journal.enter(kind, name, input(text)))),
      at
        .turn()
        .then(() => at.turn())
        .then(() => at.turn()),
    ])
    return {
      places: entered?.map((entry) => entry.settled ?? 'new').map((at) => (at === 'new' ? at : at.ok && at.value)),
      entered,
      diverged,
    }
  }

  it('gives each call an entry of its own: kind, name and place among those', async () => {
    const { entered } = await replay(
      [],
      [
        ['tool', 'act', 'a'],
        ['model', 'small', 'b'],
        ['tool', 'act', 'a'],
      ],
    )
    expect(entered?.map(({ key, order }) => [key, order])).toEqual([
      ['tool:act:0', 1],
      ['model:small:0', 2],
      ['tool:act:1', 3],
    ])
  })

  it.each([
    {
      name: 'the entry at its place',
      recorded: [
        ['tool', 'act', 'a'],
        ['tool', 'act', 'a'],
      ],
      calls: [
        ['tool', 'act', 'a'],
        ['tool', 'act', 'a'],
      ],
      places: [1, 2],
    },
    {
      name: 'else the first unused one that fits, whatever came between',
      recorded: [
        ['tool', 'act', 'a'],
        ['tool', 'act', 'b'],
        ['tool', 'act', 'a'],
      ],
      calls: [
        ['tool', 'act', 'b'],
        ['tool', 'act', 'a'],
        ['tool', 'act', 'a'],
      ],
      places: [2, 1, 3],
    },
    {
      name: 'else, once others have used up what is left, a new one',
      recorded: [['tool', 'act', 'b']],
      calls: [
        ['tool', 'act', 'new'],
        ['tool', 'act', 'b'],
      ],
      places: ['new', 1],
    },
    {
      name: 'and a new one when all are used',
      recorded: [['tool', 'act', 'a']],
      calls: [
        ['tool', 'act', 'a'],
        ['tool', 'act', 'a'],
      ],
      places: [1, 'new'],
    },
  ] as { name: string; recorded: Made[]; calls: Made[]; places: unknown[] }[])(
    'hands a call that is made anew $name',
    async ({ recorded, calls, places }) => {
      const replayed = await replay(recorded, calls)
      expect(replayed.places).toEqual(places)
      const keys = replayed.entered?.map(({ key }) => key)
      expect(new Set(keys).size).toBe(calls.length)
    },
  )

  it('gives a call that was cut off beside others that had settled the place it had', async () => {
    const { ledger: at } = ledger()
    const texts = ['a', 'b', 'c', 'd']
    const first = new Journal(at)
    const made = texts.map((text) => first.enter('tool', 'act', input(text)) as Entry)
    const settled = made.filter(({ ordinal }) => ordinal === 0 || ordinal === 3)
    const read = settled.map(
      ({ ordinal, order, digest }) =>
        new Entry('tool', 'act', undefined, ordinal, order, at, { digest, order, settled: { ok: true, value: order } }),
    )
    const journal = new Journal(at, read)
    const entered = await Promise.all(texts.map((text) => journal.enter('tool', 'act', input(text))))
    expect(entered.map(({ key }) => key)).toEqual(made.map(({ key }) => key))
  })

  it.each([
    { name: 'another kind', call: ['model', 'act', 'a'] },
    { name: 'another name', call: ['tool', 'look', 'a'] },
    { name: 'another input', call: ['tool', 'act', 'b'] },
  ] as { name: string; call: Made }[])(
    'ends the run when a call fits nothing and nothing moves: $name',
    async ({ call }) => {
      const { places, diverged } = await replay([['tool', 'act', 'a']], [call])
      expect(places).toBeUndefined()
      expect(diverged).toEqual([`${call[0]} ${call[1]}`])
    },
  )

  it('hands each entry out once, in whatever order calls are made', async () => {
    const made = fc.array(
      fc.tuple(
        fc.constantFrom('tool' as const, 'model' as const),
        fc.constantFrom('x', 'y'),
        fc.constantFrom('a', 'b', 'c'),
      ),
    )
    await fc.assert(
      fc.asyncProperty(
        made.chain((calls) => fc.tuple(fc.constant(calls), fc.shuffledSubarray(calls, { minLength: calls.length }))),
        async ([calls, shuffled]) => {
          const { places } = await replay(calls, shuffled)
          expect([...(places as number[])].sort((a, b) => a - b)).toEqual(calls.map((_, i) => i + 1))
        },
      ),
    )
  })
})
