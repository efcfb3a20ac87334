import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Annotation, Command, END, interrupt, MemorySaver, Send, START, StateGraph } from '@langchain/langgraph'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { tenMessages } from '../lib/fixtures.mjs'
import { ChunksModel } from '../lib/langchain-fakes.mjs'

export const meta = {
  subject: 'langgraph',
  packages: [
    '@langchain/langgraph',
    '@langchain/langgraph-checkpoint',
    '@langchain/langgraph-checkpoint-sqlite',
    '@langchain/core',
  ],
}
const dir = mkdtempSync(join(tmpdir(), 'bench-lg-'))
export const close = () => rmSync(dir, { recursive: true, force: true })

const STEPS = 1000
const loopGraph = (checkpointer) =>
  new StateGraph(Annotation.Root({ n: Annotation }))
    .addNode('a', async (s) => ({ n: s.n + 1 }))
    .addEdge(START, 'a')
    .addConditionalEdges('a', (s) => (s.n < STEPS ? 'a' : END), ['a', END])
    .compile({ checkpointer })

const fanGraph = (n) =>
  new StateGraph(Annotation.Root({ sum: Annotation({ reducer: (a, b) => a + b, default: () => 0 }), i: Annotation }))
    .addNode('w', async (s) => ({ sum: s.i }))
    .addConditionalEdges(START, () => Array.from({ length: n }, (_, i) => new Send('w', { i })), ['w'])
    .addEdge('w', END)
    .compile()

let thread = 0
const cfg = (extra) => ({ recursionLimit: STEPS + 10, configurable: { thread_id: `t${thread++}` }, ...extra })
const check = (r) => {
  if (r.n !== STEPS) throw new Error(`loop ended at ${r.n}`)
}

// A thread that gets its ten messages one superstep at a time and then pauses (or ends).
const msgGraph = (checkpointer, oneStep, pause) =>
  new StateGraph(Annotation.Root({ messages: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }) }))
    .addNode('add', async (s) => ({ messages: oneStep ? tenMessages() : [tenMessages()[s.messages.length]] }))
    .addNode('gate', async () => {
      if (pause) interrupt({ ask: 'approve?' })
      return {}
    })
    .addEdge(START, 'add')
    .addConditionalEdges('add', (s) => (s.messages.length < 10 ? 'add' : 'gate'), ['add', 'gate'])
    .addEdge('gate', END)
    .compile({ checkpointer })

const used = () => {
  for (let i = 0; i < 4; i++) globalThis.gc?.()
  const m = process.memoryUsage()
  return { heap: m.heapUsed, buffers: m.external }
}

async function perThread(oneStep, pause) {
  const saver = new MemorySaver()
  const g = msgGraph(saver, oneStep, pause)
  for (let i = 0; i < 30; i++) await g.invoke({ messages: [] }, { configurable: { thread_id: `warm${i}` } })
  const a = used()
  for (let i = 0; i < 1000; i++) await g.invoke({ messages: [] }, { configurable: { thread_id: `x${i}` } })
  const b = used()
  const heap = (b.heap - a.heap) / 1000 / 1024
  const buffers = (b.buffers - a.buffers) / 1000 / 1024
  if (Object.keys(saver.storage).length < 1000) throw new Error('threads missing')
  return { value: heap + buffers, unit: 'KiB/thread', extra: { heapKiB: heap, buffersKiB: buffers } }
}

const sqlite = (name) => SqliteSaver.fromConnString(join(dir, name))

export async function cases() {
  return [
    {
      id: 'no checkpointer',
      group: 'loop 1000 steps',
      unit: 'us',
      ops: STEPS,
      samples: 11,
      setup: () => loopGraph(),
      fn: async (g) => check(await g.invoke({ n: 0 }, { recursionLimit: STEPS + 10 })),
    },
    ...['exit', 'async', 'sync'].map((durability) => ({
      id: `MemorySaver, ${durability}`,
      group: 'loop 1000 steps',
      unit: 'us',
      ops: STEPS,
      samples: 9,
      warmup: 2,
      setup: () => ({}),
      fn: async () => check(await loopGraph(new MemorySaver()).invoke({ n: 0 }, cfg({ durability }))),
    })),
    ...['exit', 'async', 'sync'].map((durability) => ({
      id: `SqliteSaver, ${durability}`,
      group: 'loop 1000 steps',
      unit: 'us',
      ops: STEPS,
      samples: 7,
      warmup: 1,
      note: 'WAL file',
      setup: () => {
        const s = sqlite(`loop-${durability}.db`)
        return { s, g: loopGraph(s) }
      },
      teardown: ({ s }) => s.db.close(),
      fn: async ({ g }) => check(await g.invoke({ n: 0 }, cfg({ durability }))),
    })),
    ...[100, 1000].map((n) => ({
      id: `${n} Sends`,
      group: 'fan-out',
      unit: 'us',
      ops: n,
      samples: 15,
      warmup: 3,
      note: 'per task',
      setup: () => fanGraph(n),
      fn: async (g) => {
        const r = await g.invoke({ i: 0 })
        if (r.sum !== (n * (n - 1)) / 2) throw new Error(`bad sum ${r.sum}`)
      },
    })),
    {
      id: 'interrupt + resume, MemorySaver',
      group: 'pause and resume',
      unit: 'us',
      ops: 100,
      samples: 11,
      note: 'run to pause, then resume',
      setup: () => msgGraph(new MemorySaver(), true, true),
      fn: async (g) => {
        for (let i = 0; i < 100; i++) {
          const c = { configurable: { thread_id: `p${thread++}` } }
          await g.invoke({ messages: [] }, c)
          await g.invoke(new Command({ resume: true }), c)
        }
      },
    },
    {
      id: 'MemorySaver, 1 step, paused',
      group: 'memory per idle thread',
      note: '10 messages, 2.9 KB',
      measure: () => perThread(true, true),
    },
    {
      id: 'MemorySaver, 10 steps, paused',
      group: 'memory per idle thread',
      note: '10 messages, 2.9 KB',
      measure: () => perThread(false, true),
    },
    {
      id: 'MemorySaver, 10 steps, ended',
      group: 'memory per idle thread',
      note: '10 messages, 2.9 KB',
      measure: () => perThread(false, false),
    },
    {
      id: 'SqliteSaver file, 10 steps, paused',
      group: 'memory per idle thread',
      note: 'bytes on disk',
      measure: async () => {
        const f = join(dir, 'bytes.db')
        const s = SqliteSaver.fromConnString(f)
        const g = msgGraph(s, false, true)
        for (let i = 0; i < 200; i++) await g.invoke({ messages: [] }, { configurable: { thread_id: `x${i}` } })
        s.db.pragma('wal_checkpoint(TRUNCATE)')
        s.db.close()
        return { value: statSync(f).size / 200 / 1024, unit: 'KiB/thread' }
      },
    },
    {
      id: 'SqliteSaver, 200 steps of +1 KB',
      group: 'checkpoint growth',
      note: '200 KB of content',
      measure: async () => {
        const f = join(dir, 'growth.db')
        const s = SqliteSaver.fromConnString(f)
        const g = new StateGraph(
          Annotation.Root({ log: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }) }),
        )
          .addNode('a', async () => ({ log: ['x'.repeat(1024)] }))
          .addEdge(START, 'a')
          .addConditionalEdges('a', (st) => (st.log.length < 200 ? 'a' : END), ['a', END])
          .compile({ checkpointer: s })
        const t0 = performance.now()
        await g.invoke({ log: [] }, cfg({ durability: 'sync' }))
        const ms = performance.now() - t0
        s.db.pragma('wal_checkpoint(TRUNCATE)')
        s.db.close()
        return { value: statSync(f).size / 1024, unit: 'KiB/thread', extra: { msPerRun: ms } }
      },
    },
    {
      id: 'node -> model, streamMode messages',
      group: 'stream 10000 chunks',
      unit: 'chunks/s',
      rate: true,
      ops: 10000,
      samples: 5,
      warmup: 1,
      setup: () => {
        const model = new ChunksModel(10000)
        return new StateGraph(
          Annotation.Root({ messages: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }) }),
        )
          .addNode('m', async (_s, c) => ({ messages: [await model.invoke('hi', c)] }))
          .addEdge(START, 'm')
          .addEdge('m', END)
          .compile()
      },
      fn: async (g) => {
        let n = 0
        for await (const _ of await g.stream({ messages: [] }, { streamMode: 'messages' })) n++
        if (n < 10000) throw new Error(`only ${n}`)
      },
    },
    {
      id: 'node -> config.writer, streamMode custom',
      group: 'stream 10000 chunks',
      unit: 'chunks/s',
      rate: true,
      ops: 10000,
      samples: 9,
      warmup: 2,
      setup: () =>
        new StateGraph(Annotation.Root({ n: Annotation }))
          .addNode('m', async (_s, c) => {
            for (let i = 0; i < 10000; i++) {
              c.writer({ delta: 'tok ' })
              if (i % 64 === 0) await null
            }
            return { n: 1 }
          })
          .addEdge(START, 'm')
          .addEdge('m', END)
          .compile(),
      fn: async (g) => {
        let n = 0
        for await (const _ of await g.stream({ n: 0 }, { streamMode: 'custom' })) n++
        if (n < 10000) throw new Error(`only ${n}`)
      },
    },
    {
      id: 'raw model.stream(), no graph',
      group: 'stream 10000 chunks',
      unit: 'chunks/s',
      rate: true,
      ops: 10000,
      samples: 7,
      warmup: 1,
      setup: () => new ChunksModel(10000),
      fn: async (m) => {
        let n = 0
        for await (const _ of await m.stream('hi')) n++
        if (n < 10000) throw new Error(`only ${n}`)
      },
    },
  ]
}
