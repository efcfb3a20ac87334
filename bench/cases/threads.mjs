// Runs on threads: what a superstep costs that is written down, a pause and a resume, an idle thread, and what is on disk.
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { createRequire, isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  append,
  createRuntime,
  END,
  field,
  graph,
  MemoryStore,
  middleware,
  node,
  policy,
  START,
  state,
} from '@sluice/core'
import { sqliteStore } from '@sluice/host'
import { z } from 'zod'
import { interleaved, row } from '../lib/measure.mjs'

const STEPS = 2_000
const LIMITS = { maxIterations: 1e9 }
const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
let threads = 0
const next = () => ({ thread: `t${threads++}` })

function loop(keys, steps, work = (s) => ({ n: s.n + 1 }), own = []) {
  const rest = Object.fromEntries(Array.from({ length: keys - 1 }, (_, i) => [`field${i}`, z.string().default('x')]))
  const State = state({ n: z.number().default(0), ...rest })
  const step = node('step', State, work)
  return graph('loop', State, { middleware: own })
    .edge(START, step)
    .when(step, (s) => s.n < steps, { then: step, otherwise: END })
    .check()
}

async function inMemory() {
  const store = new MemoryStore()
  const runtime = createRuntime({ limits: LIMITS, store })
  const watched = createRuntime({
    limits: LIMITS,
    store,
    policies: [
      policy({
        name: 'Nothing',
        seams: { node: { before: () => ({ action: 'proceed' }), after: () => ({ action: 'pass' }) } },
      }),
    ],
  })
  const [three, hundred] = [loop(3, STEPS), loop(100, STEPS)]
  const async = loop(3, STEPS, async (s) => ({ n: s.n + 1 }))
  const silent = middleware({ name: 'silent', beforeNode: () => undefined, afterNode: () => undefined })
  const withOwn = loop(100, STEPS, undefined, [silent])
  const texts = () => {
    const log = []
    for (let n = 1; n <= STEPS; n++)
      log.push(JSON.stringify({ type: 'step', writes: [{ task: 'step', update: { n } }], next: ['step'] }))
    return log
  }
  // A thread is dropped when it was measured: what earlier ones hold is not what a superstep costs.
  const once = async (run) => {
    const at = next()
    await run(at)
    store.remove(at.thread)
  }
  const listened = async (runtime, work, at) => {
    for await (const _ of runtime.stream(work, {}, at));
  }
  const took = await interleaved(
    {
      floor: texts,
      three: () => once((at) => runtime.run(three, {}, at)),
      async: () => once((at) => runtime.run(async, {}, at)),
      hundred: () => once((at) => runtime.run(hundred, {}, at)),
      own: () => once((at) => listened(runtime, withOwn, at)),
      policy: () => once((at) => listened(watched, hundred, at)),
    },
    { ops: STEPS },
  )
  const figure = (name, key, goal, most) =>
    row('superstep, in-memory store', name, took[key].median, 'µs', {
      best: took[key].best,
      floor: took.floor.median,
      goal,
      holds: took[key].best <= most,
    })
  return [
    figure('3 fields, sync node', 'three', '≤ 1.5', 1.5),
    figure('3 fields, async node', 'async', '≤ 1.5', 1.5),
    figure('100 fields', 'hundred', '≤ 1.5', 1.5),
    row('superstep, everything at once', '100 fields, store, a listener, one middleware', took.own.median, 'µs', {
      best: took.own.best,
      goal: '≤ 3',
      holds: took.own.best <= 3,
    }),
    row('superstep, everything at once', '100 fields, store, a listener, one policy', took.policy.median, 'µs', {
      best: took.policy.best,
    }),
  ]
}

/** A driver of the same kind and settings, for the bare insert of the same bytes. */
async function bareDriver(file, synchronous) {
  const require = createRequire(new URL('../../packages/host/package.json', import.meta.url))
  const Database = isBuiltin('node:sqlite') ? require('node:sqlite').DatabaseSync : require('better-sqlite3')
  const db = new Database(file)
  db.exec('pragma journal_mode = wal')
  db.exec(`pragma synchronous = ${synchronous}`)
  db.exec('create table log(id integer primary key, body text)')
  return db
}

async function onDisk(synchronous, steps, goal, most) {
  const store = sqliteStore(join(folder, `${synchronous}.db`), { synchronous })
  const runtime = createRuntime({ limits: LIMITS, store })
  const db = await bareDriver(join(folder, `${synchronous}-bare.db`), synchronous)
  const insert = db.prepare('insert into log(body) values (?)')
  const work = loop(3, steps)
  const bare = () => {
    for (let n = 1; n <= steps; n++) {
      insert.run(
        JSON.stringify({
          type: 'step',
          writes: [{ task: 'step', update: { n } }],
          next: ['step'],
          time: 1764547200000,
        }),
      )
    }
  }
  const samples = synchronous === 'FULL' ? 7 : 15
  const took = await interleaved(
    { bare, run: () => runtime.run(work, {}, next()) },
    { ops: steps, samples, warmups: 2 },
  )
  const measured = [
    row(`superstep, SQLite ${synchronous}`, '3 fields', took.run.median, 'µs', {
      best: took.run.best,
      floor: took.bare.median,
      goal,
      holds: took.run.median <= most * took.bare.median,
    }),
  ]
  if (synchronous === 'FULL') {
    const many = loop(3, 100)
    const together = await interleaved(
      {
        one: () => runtime.run(many, {}, next()),
        sixteen: () => Promise.all(Array.from({ length: 16 }, () => runtime.run(many, {}, next()))),
      },
      { ops: 100, samples: 7, warmups: 1 },
    )
    const times = (16 * together.one.median) / together.sixteen.median
    measured.push(row('commits, SQLite FULL', '16 threads against one', times, '×', { goal: '≥ 4', holds: times >= 4 }))
  }
  await store.close()
  db.close()
  return measured
}

async function pauses() {
  const store = new MemoryStore()
  const runtime = createRuntime({ store })
  const State = state({ approved: field(false), messages: append(z.string()) })
  const messages = Array.from({ length: 10 }, (_, i) => `${i} ${'x'.repeat(280)}`)
  const review = node('review', State, async (_s, ctx) => ({ approved: await ctx.ask('approve', 'Approve?') }))
  const work = graph('pause', State).edge(START, review).edge(review, END).check()
  const ops = 500
  const took = await interleaved(
    {
      pauseAndResume: async () => {
        for (let i = 0; i < ops; i++) {
          const at = next()
          await runtime.run(work, { messages }, at)
          await runtime.resume(work, at.thread, true)
          store.remove(at.thread)
        }
      },
    },
    { ops, samples: 9, warmups: 3 },
  )
  return [
    row('pause and resume, in memory', '2.9 KB state', took.pauseAndResume.median, 'µs', {
      best: took.pauseAndResume.best,
      goal: '≤ 60',
      holds: took.pauseAndResume.best <= 60,
    }),
  ]
}

/** What a thread costs that only waits, from the heap before and after many. */
async function idle() {
  const store = new MemoryStore()
  const runtime = createRuntime({ store })
  const State = state({ messages: append(z.string()) })
  const say = node('say', State, (s) => (s.messages.length < 10 ? { messages: [text(s.messages.length)] } : {}))
  const work = graph('idle', State)
    .edge(START, say)
    .when(say, (s) => s.messages.length < 10, { then: say, otherwise: END })
    .check()
  const count = 2_000
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc')
  const collect = () => {
    gc()
    gc()
    return process.memoryUsage().heapUsed
  }
  await runtime.run(work, {}, { thread: 'warm' })
  const before = collect()
  for (let i = 0; i < count; i++) await runtime.run(work, {}, { thread: `idle ${i}` })
  const bytes = (collect() - before) / count
  return [
    row('idle thread', '2.9 KB state, 10 steps', bytes / 1024, 'KiB', {
      floor: 2.9,
      goal: '≤ 6',
      holds: bytes <= 6 * 1024,
    }),
  ]
}

const text = (i) => Buffer.from(`${i} ${'y'.repeat(280)}`).toString()

async function sizes() {
  const file = join(folder, 'size.db')
  const store = sqliteStore(file, { synchronous: 'NORMAL' })
  const runtime = createRuntime({ limits: LIMITS, store })
  const State = state({ big: z.string().default('b'.repeat(1024 * 1024)), log: append(z.string()) })
  const add = node('add', State, () => ({ log: ['z'.repeat(1024)] }))
  const work = graph('grow', State)
    .edge(START, add)
    .when(add, (s) => s.log.length < 200, { then: add, otherwise: END })
    .check()
  await runtime.run(work, {}, { thread: 'one' })
  await store.close()
  const beyond = (statSync(file).size - 1024 * 1024) / (200 * 1024)
  return [
    row('200 steps of +1 KB, on disk', 'beside a static field of 1 MB', beyond, '× what was added', {
      goal: '≤ 2',
      holds: beyond <= 2,
    }),
  ]
}

export default async function threadCases() {
  try {
    return [
      ...(await idle()),
      ...(await inMemory()),
      ...(await onDisk('NORMAL', 2_000, '≤ 1.5 × floor', 1.5)),
      ...(await onDisk('FULL', 200, '≤ 1.3 × floor', 1.3)),
      ...(await pauses()),
      ...(await sizes()),
    ]
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
