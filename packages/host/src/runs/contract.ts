import { deepStrictEqual } from 'node:assert'
import type { PutAsk, RunEntry, RunLog } from './run-log.ts'

/** One thing that every log of runs does; `check` rejects when this one does not. */
export interface RunLogCase {
  readonly name: string
  check(log: RunLog): Promise<void>
}

let last = 0

/** A run that nobody else has. */
function entryOf(more: Partial<RunEntry> = {}): RunEntry {
  const id = `run-${++last}`
  return {
    id,
    owner: 'ann',
    thread: 't',
    branch: 'main',
    flow: { name: 'f' },
    begun: { kind: 'start', inputs: {} },
    by: 'ann',
    startedBy: 'ann',
    at: last,
    ...more,
  }
}

async function begun(log: RunLog, more: Partial<RunEntry> = {}, answering?: readonly string[]): Promise<RunEntry> {
  const entry = entryOf(more)
  await log.begin(entry, answering)
  return entry
}

const askOf = (id: string): PutAsk => ({
  id,
  key: `node:${id}`,
  askedBy: 'graph',
  payload: { really: true },
  nodeName: 'node',
  taskId: '1',
  askedAt: 1,
})

const ending = (status: 'completed' | 'failed', result = 'done') => ({ status, result, warnings: [], decisions: [] })
const completed = (at = 1) => ({ ending: ending('completed'), at })
const pausedWith = (...ids: readonly string[]) => ({
  ending: { status: 'paused' as const, asks: ids.map(askOf), warnings: [], decisions: [] },
  at: 1,
})

/** A run that has ended and asks these. */
async function asked(log: RunLog, ids: readonly string[], more: Partial<RunEntry> = {}): Promise<RunEntry> {
  const entry = await begun(log, more)
  await log.end(entry.id, pausedWith(...ids))
  return entry
}

const openIn = async (log: RunLog, thread = 't') => (await log.asks({ owner: 'ann', thread })).map(({ ask }) => ask.id)
const textsOf = async (log: RunLog, run: string, after = 0, limit = 100) =>
  (await log.events(run, after, limit)).map(({ seq, text }) => `${seq} ${text}`)

/** What a log of runs must do, for a suite that runs each case on a fresh, empty one. */
export const runLogContract: readonly RunLogCase[] = [
  {
    name: 'hands back a run as it was begun, and how it ended',
    async check(log) {
      const entry = await begun(log, { begun: { kind: 'start', inputs: { text: '\u0000 \ud800 𝄞' } }, timeoutMs: 5 })
      same(await log.run(entry.id), entry)
      await log.end(entry.id, completed(7))
      same(await log.run(entry.id), { ...entry, ending: ending('completed'), endedAt: 7 })
      same(await log.run('another'), undefined)
    },
  },
  {
    name: 'numbers the events of each run from 1, and keeps every character',
    async check(log) {
      const [one, two] = [await begun(log), await begun(log, { thread: 'u' })]
      const odd = JSON.stringify({ text: '\u2028 𝄞 \\ "', big: 'x'.repeat(100_000) })
      await log.append(one.id, ['"a"', odd])
      await log.append(two.id, ['"z"'])
      await log.append(one.id, ['"c"'])
      await log.end(one.id, { ...completed(), events: ['"end"'] })
      same(await textsOf(log, one.id), ['1 "a"', `2 ${odd}`, '3 "c"', '4 "end"'])
      same(await textsOf(log, one.id, 2, 1), ['3 "c"'])
      same(await textsOf(log, one.id, 4), [])
      same(await textsOf(log, two.id), ['1 "z"'])
    },
  },
  {
    name: 'keeps the order of events that are appended together, of several runs',
    async check(log) {
      const runs = [await begun(log), await begun(log, { thread: 'u' }), await begun(log, { thread: 'v' })]
      const writes = ['1', '2', '3'].flatMap((text) => runs.map(async ({ id }) => log.append(id, [text, text])))
      await Promise.all(writes)
      for (const { id } of runs) same(await textsOf(log, id), ['1 1', '2 1', '3 2', '4 2', '5 3', '6 3'])
    },
  },
  {
    name: 'knows no events of a run that it does not know, and takes none of one that has ended',
    async check(log) {
      const entry = await begun(log)
      await log.end(entry.id, completed())
      await refuses('RUN_UNKNOWN', () => log.events('another', 0, 1))
      await refuses('RUN_UNKNOWN', () => log.append('another', ['1']))
      await refuses('RUN_LOST', () => log.append(entry.id, ['1']))
      await refuses('RUN_LOST', () => log.end(entry.id, completed()))
      same(await textsOf(log, entry.id), [])
    },
  },
  {
    name: 'lists runs by owner and thread, the latest first',
    async check(log) {
      const of = async (more: Partial<RunEntry>) => (await begun(log, more)).id
      const [a, b] = [await of({}), await of({ thread: 'u' })]
      const [c, d] = [await of({ owner: 'bob' }), await of({ owner: '', thread: 't' })]
      const ids = async (filter?: Parameters<RunLog['runs']>[0]) => (await log.runs(filter)).map(({ id }) => id)
      same(await ids(), [d, c, b, a])
      same(await ids({ owner: 'ann' }), [b, a])
      same(await ids({ owner: 'ann', thread: 't' }), [a])
      same(await ids({ owner: '', limit: 1 }), [d])
      same(await ids({ limit: 2 }), [d, c])
    },
  },
  {
    name: 'opens the questions of a run that waits, and closes those that another one answers',
    async check(log) {
      const first = await asked(log, ['a', 'b'])
      same(await openIn(log), ['a', 'b'])
      const second = await begun(log, { by: 'bob', begun: { kind: 'resume', answers: {} } }, ['a'])
      same(await openIn(log), ['b'])
      const { run, closed } = (await log.ask('a')) ?? {}
      same([run, closed], [first.id, { by: 'bob', at: second.at, run: second.id }])
      await log.end(second.id, pausedWith('b', 'c'))
      same(await openIn(log), ['b', 'c'])
      same((await log.ask('b'))?.run, first.id)
    },
  },
  {
    name: 'withdraws what nobody waits for any more, in its own line alone',
    async check(log) {
      await asked(log, ['a'])
      await asked(log, ['fork'], { branch: 'fork' })
      await asked(log, ['other'], { thread: 'u' })
      const run = await begun(log)
      await log.end(run.id, completed(9))
      same(await openIn(log), ['fork'])
      same(await openIn(log, 'u'), ['other'])
      same((await log.ask('a'))?.closed, { by: null, at: 9, run: run.id })
    },
  },
  {
    name: 'lets a question be answered once: the other run is not there',
    async check(log) {
      await asked(log, ['a', 'b'])
      const entries = [entryOf(), entryOf()]
      const begin = async (entry: RunEntry) => log.begin(entry, ['b', 'a'])
      const begins = await Promise.allSettled(entries.map(begin))
      same(begins.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
      const lost = begins.findIndex(({ status }) => status === 'rejected')
      same((begins[lost] as PromiseRejectedResult).reason.code, 'ASK_ANSWERED')
      same(await log.run(entries[lost]?.id ?? ''), undefined)
      await refuses('ASK_ANSWERED', () => log.begin(entryOf(), ['a']))
    },
  },
  {
    name: 'forgets a run that was refused, and asks again what it was to answer',
    async check(log) {
      await asked(log, ['a'])
      const run = await begun(log, { flow: { name: 'another' } }, ['a'])
      await log.refuse(run.id)
      same(await log.run(run.id), undefined)
      same(await openIn(log), ['a'])
      same((await log.thread('ann', 't'))?.flow, { name: 'f' })
      const alone = await begun(log, { thread: 'new' })
      await log.refuse(alone.id)
      same(await log.thread('ann', 'new'), undefined)
      await begun(log, {}, ['a'])
    },
  },
  {
    name: 'keeps a run that its thread refused when it was taken over, and asks again what it was to answer',
    async check(log) {
      await asked(log, ['a', 'b'])
      const run = await begun(log, {}, ['a'])
      await log.end(run.id, { ending: ending('failed'), at: 1, refused: true })
      same((await log.run(run.id))?.ending?.status, 'failed')
      same(await openIn(log), ['a', 'b'])
    },
  },
  {
    name: 'gives a run that was let go of to whoever claims it first, and it goes on where its events end',
    async check(log) {
      const run = await begun(log)
      await log.append(run.id, ['1'])
      same(await log.claim(), [])
      await log.release(run.id)
      await refuses('RUN_LOST', () => log.append(run.id, ['2']))
      await refuses('RUN_LOST', () => log.end(run.id, completed()))
      same(await log.claim(), [run])
      same(await log.claim(), [])
      await log.append(run.id, ['2'])
      await log.end(run.id, { ...completed(), events: ['3'] })
      same(await textsOf(log, run.id), ['1 1', '2 2', '3 3'])
      await log.release(run.id)
      same(await log.claim(), [])
    },
  },
  {
    name: 'tells whoever holds a run that it is to be cancelled',
    async check(log) {
      const [run, other] = [await begun(log), await begun(log, { thread: 'u' })]
      same(await log.beat(), [])
      same(await log.cancel(run.id), true)
      same(await log.beat(), [run.id])
      await log.release(run.id)
      same(await log.beat(), [])
      await log.claim()
      same(await log.beat(), [run.id])
      await log.end(run.id, completed())
      same(await log.beat(), [])
      same([await log.cancel(run.id), await log.cancel('another')], [false, false])
      same((await log.run(other.id))?.ending, undefined)
    },
  },
  {
    name: 'knows the threads of each owner, the latest begun first, with the flow of their last run',
    async check(log) {
      await log.addThread({ owner: 'ann', id: 'a', at: 1, flow: { name: 'f' } })
      await begun(log, { thread: 'b', at: 2 })
      await begun(log, { thread: 'a', at: 3, flow: { name: 'g' } })
      await log.addThread({ owner: 'ann', id: 'a', at: 4 })
      await begun(log, { owner: 'bob', thread: 'b' })
      same(await log.threads('ann'), [
        { owner: 'ann', id: 'b', at: 2, flow: { name: 'f' } },
        { owner: 'ann', id: 'a', at: 1, flow: { name: 'g' } },
      ])
      same((await log.threads('ann', 1)).length, 1)
      same(
        (await log.threads(undefined)).map(({ owner, id }) => `${owner} ${id}`),
        ['bob b', 'ann b', 'ann a'],
      )
      same((await log.thread('bob', 'b'))?.owner, 'bob')
      same(await log.thread('bob', 'a'), undefined)
    },
  },
  {
    name: 'forgets a thread with everything that belongs to it, and nothing else',
    async check(log) {
      const run = await begun(log)
      await log.append(run.id, ['1'])
      const paused = await asked(log, ['a'])
      const other = await asked(log, ['other'], { owner: 'bob' })
      await log.removeThread('ann', 't')
      same(await log.runs(), [await log.run(other.id)])
      same([await log.run(run.id), await log.run(paused.id), await log.ask('a')], [undefined, undefined, undefined])
      same((await log.ask('other'))?.run, other.id)
      same(await log.threads('ann'), [])
      await refuses('RUN_UNKNOWN', () => log.append(run.id, ['2']))
    },
  },
  {
    name: 'forgets the runs that ended first, and none that is under way',
    async check(log) {
      const under = await begun(log)
      const ids: string[] = []
      for (const at of [1, 2, 3, 4]) {
        const { id } = await begun(log, { thread: `t${at}` })
        await log.append(id, ['1'])
        await log.end(id, completed(at))
        ids.push(id)
      }
      const left = async () => (await log.runs()).map(({ id }) => id).reverse()
      same(await log.trim({ keep: 3 }), [])
      same(await left(), [under.id, ...ids.slice(1)])
      await refuses('RUN_UNKNOWN', () => log.events(ids[0] ?? '', 0, 1))
      await log.trim({ endedBefore: 4 })
      same(await left(), [under.id, ids[3]])
      await log.trim({ keep: 0 })
      same(await left(), [under.id])
      same((await log.threads('ann')).length, 5)
    },
  },
  {
    name: 'forgets an unnamed thread with its last run, unless it still asks something',
    async check(log) {
      const one = await begun(log, { thread: 'one', unnamed: true })
      await log.end(one.id, completed())
      await asked(log, ['a'], { thread: 'two', unnamed: true })
      same(
        (await log.trim({ keep: 0 })).map(({ id }) => id),
        ['one'],
      )
      same(await log.thread('ann', 'one'), undefined)
      same(await openIn(log, 'two'), ['a'])
      const answering = await begun(log, { thread: 'two' }, ['a'])
      same(await log.trim({ keep: 0 }), [])
      await log.end(answering.id, completed())
      await refuses('ASK_ANSWERED', () => log.begin(entryOf({ thread: 'two' }), ['a']))
      same(
        (await log.trim({ keep: 0 })).map(({ id }) => id),
        ['two'],
      )
      same(await log.ask('a'), undefined)
    },
  },
]

function same(actual: unknown, expected: unknown): void {
  deepStrictEqual(actual, expected)
}

async function refuses(code: string, work: () => unknown): Promise<void> {
  try {
    await work()
  } catch (error) {
    same((error as { code?: string }).code, code)
    return
  }
  throw new Error(`this should have been refused with ${code}, and was not`)
}
