import { MemorySaver } from '@langchain/langgraph'
import { createAgent, createMiddleware, tool } from 'langchain'
import { z } from 'zod'
import { ROUNDS } from '../lib/fixtures.mjs'
import { ChunksModel, RoundsModel } from '../lib/langchain-fakes.mjs'

export const meta = { subject: 'langchain', packages: ['langchain', '@langchain/langgraph', '@langchain/core'] }

const lookup = tool(async ({ q }) => `result for ${q}`, {
  name: 'lookup',
  description: 'Looks a thing up',
  schema: z.object({ q: z.string() }),
})

const HOOKS = {
  all: () => ({
    beforeAgent: () => {},
    beforeModel: () => {},
    wrapModelCall: (r, h) => h(r),
    afterModel: () => {},
    wrapToolCall: (r, h) => h(r),
    afterAgent: () => {},
  }),
  wrap: () => ({ wrapModelCall: (r, h) => h(r), wrapToolCall: (r, h) => h(r) }),
  nodes: () => ({ beforeModel: () => {}, afterModel: () => {} }),
}
const noop = (k, kind) => Array.from({ length: k }, (_, i) => createMiddleware({ name: `noop${i}`, ...HOOKS[kind]() }))

let thread = 0
const agent = (k, kind, extra) =>
  createAgent({ model: new RoundsModel(ROUNDS), tools: [lookup], middleware: noop(k, kind), ...extra })
const go = async (a) => {
  const r = await a.invoke(
    { messages: [{ role: 'user', content: 'go' }] },
    { recursionLimit: 5000, configurable: { thread_id: `t${thread++}` } },
  )
  if (r.messages.length !== 2 + 2 * ROUNDS) throw new Error(`messages ${r.messages.length}`)
}

export async function cases() {
  const base = { group: 'agent 10 tool rounds', unit: 'ms', ops: 1, samples: 21, warmup: 5 }
  return [
    ...[0, 1, 5, 10].map((k) => ({
      ...base,
      id: `${k} middleware, all six hooks`,
      series: 'all six hooks',
      k,
      setup: () => agent(k, 'all'),
      fn: go,
    })),
    ...[0, 1, 5, 10].map((k) => ({
      ...base,
      id: `${k} middleware, wrap* only`,
      series: 'wrapModelCall + wrapToolCall',
      k,
      setup: () => agent(k, 'wrap'),
      fn: go,
    })),
    ...[0, 5, 10].map((k) => ({
      ...base,
      id: `${k} middleware, before/afterModel`,
      series: 'beforeModel + afterModel',
      k,
      setup: () => agent(k, 'nodes'),
      fn: go,
    })),
    ...[0, 5].map((k) => ({
      ...base,
      id: `${k} middleware, all + MemorySaver`,
      series: 'all six hooks, MemorySaver',
      k,
      samples: 11,
      warmup: 3,
      setup: () => agent(k, 'all', { checkpointer: new MemorySaver() }),
      fn: go,
    })),
    ...[0, 5].map((k) => ({
      id: `createAgent, ${k} middleware, messages`,
      group: 'stream 10000 chunks',
      unit: 'chunks/s',
      rate: true,
      ops: 10000,
      samples: 5,
      warmup: 1,
      setup: () => createAgent({ model: new ChunksModel(10000), tools: [lookup], middleware: noop(k, 'wrap') }),
      fn: async (a) => {
        let n = 0
        for await (const _ of await a.stream(
          { messages: [{ role: 'user', content: 'go' }] },
          { streamMode: 'messages' },
        ))
          n++
        if (n < 10000) throw new Error(`only ${n}`)
      },
    })),
  ]
}
