import { Agent } from '@mastra/core/agent'
import { Mastra } from '@mastra/core/mastra'
import { InMemoryStore } from '@mastra/core/storage'
import { createTool } from '@mastra/core/tools'
import { createStep, createWorkflow } from '@mastra/core/workflows'
import { z } from 'zod'
import { ROUNDS } from '../lib/fixtures.mjs'

export const meta = { subject: 'mastra', packages: ['@mastra/core'] }

const N = z.object({ n: z.number() })
const inc = (id) =>
  createStep({ id, inputSchema: N, outputSchema: N, execute: async ({ inputData }) => ({ n: inputData.n + 1 }) })
const chain = (steps) => {
  let w = createWorkflow({ id: `chain${steps}`, inputSchema: N, outputSchema: N })
  for (let i = 0; i < steps; i++) w = w.then(inc(`s${i}`))
  return w.commit()
}
const loop = (steps) =>
  createWorkflow({ id: `loop${steps}`, inputSchema: N, outputSchema: N })
    .dountil(inc('a'), async ({ inputData }) => inputData.n >= steps)
    .commit()
const fan = (n) =>
  createWorkflow({ id: `fan${n}`, inputSchema: z.array(N), outputSchema: z.array(N) })
    .foreach(inc('w'), { concurrency: n })
    .commit()

const withMastra = (wf, storage) => {
  const m = new Mastra({ workflows: { wf }, logger: false, ...(storage ? { storage: new InMemoryStore() } : {}) })
  return m.getWorkflow('wf')
}
// A workflow has a method `then`, so `await`ing one (or returning one from an async function) never settles: keep it in a box.
const box = (w) => ({ w })
const run = async ({ w: wf }, inputData, want) => {
  const r = await (await wf.createRun()).start({ inputData })
  if (r.status !== 'success') throw new Error(`status ${r.status}: ${JSON.stringify(r.error ?? r)?.slice(0, 300)}`)
  if (want !== undefined && r.result.n !== want) throw new Error(`n ${r.result.n}`)
}

const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
// Model of AI SDK specification v2, the oldest that this peer takes; answers by streaming.
const model = () => ({
  specificationVersion: 'v2',
  provider: 'fake',
  modelId: 'fake',
  supportedUrls: {},
  async doGenerate({ prompt }) {
    return reply(prompt)
  },
  async doStream({ prompt }) {
    const { content, finishReason } = reply(prompt)
    const parts = [{ type: 'stream-start', warnings: [] }]
    for (const c of content) {
      if (c.type === 'text')
        parts.push(
          { type: 'text-start', id: 't' },
          { type: 'text-delta', id: 't', delta: c.text },
          { type: 'text-end', id: 't' },
        )
      else parts.push(c)
    }
    parts.push({ type: 'finish', finishReason, usage })
    return {
      stream: new ReadableStream({
        start(c) {
          for (const p of parts) c.enqueue(p)
          c.close()
        },
      }),
    }
  },
})
function reply(prompt) {
  let done = 0
  for (const m of prompt) if (m.role === 'tool') done += m.content.length
  return done < ROUNDS
    ? {
        content: [
          {
            type: 'tool-call',
            toolCallId: `call_${done}`,
            toolName: 'lookup',
            input: JSON.stringify({ q: `question ${done}` }),
          },
        ],
        finishReason: 'tool-calls',
        usage,
        warnings: [],
      }
    : { content: [{ type: 'text', text: 'the final answer' }], finishReason: 'stop', usage, warnings: [] }
}
const chunks = () => ({
  specificationVersion: 'v2',
  provider: 'fake',
  modelId: 'fake',
  supportedUrls: {},
  async doStream() {
    let i = -2
    return {
      stream: new ReadableStream({
        pull(c) {
          if (i === -2) c.enqueue({ type: 'stream-start', warnings: [] })
          else if (i === -1) c.enqueue({ type: 'text-start', id: 't' })
          else if (i < 10000) c.enqueue({ type: 'text-delta', id: 't', delta: 'tok ' })
          else if (i === 10000) c.enqueue({ type: 'text-end', id: 't' })
          else {
            c.enqueue({ type: 'finish', finishReason: 'stop', usage })
            c.close()
          }
          i++
        },
      }),
    }
  },
})
const lookup = createTool({
  id: 'lookup',
  description: 'Looks a thing up',
  inputSchema: z.object({ q: z.string() }),
  outputSchema: z.object({ r: z.string() }),
  execute: async (input) => ({ r: `result for ${input.q ?? input.context?.q}` }),
})
const procs = (k) =>
  Array.from({ length: k }, (_, i) => ({
    id: `p${i}`,
    processInput: async ({ messages }) => messages,
    processInputStep: async () => ({}),
    processOutputStep: async ({ messages }) => messages,
  }))
const outProcs = (k) =>
  Array.from({ length: k }, (_, i) => ({
    id: `o${i}`,
    processOutputStream: async ({ part }) => part,
    processOutputStep: async ({ messages }) => messages,
  }))
const agent = (k, m = model()) =>
  new Agent({
    id: 'a',
    name: 'a',
    instructions: 'x',
    model: m,
    tools: { lookup },
    ...(k ? { inputProcessors: procs(k), outputProcessors: outProcs(k) } : {}),
  })

export async function cases() {
  return [
    {
      id: '100-step .then chain, bare',
      group: 'loop 1000 steps',
      note: '100 steps',
      unit: 'us',
      ops: 100,
      samples: 11,
      setup: () => box(chain(100)),
      fn: (w) => run(w, { n: 0 }, 100),
    },
    {
      id: '100-step .then chain, in-memory store',
      group: 'loop 1000 steps',
      note: '100 steps',
      unit: 'us',
      ops: 100,
      samples: 7,
      setup: () => box(withMastra(chain(100), true)),
      fn: (w) => run(w, { n: 0 }, 100),
    },
    {
      id: 'dountil loop, 1000 iterations, bare',
      group: 'loop 1000 steps',
      unit: 'us',
      ops: 1000,
      samples: 7,
      warmup: 1,
      setup: () => box(loop(1000)),
      fn: (w) => run(w, { n: 0 }, 1000),
    },
    ...[100, 1000].map((n) => ({
      id: `foreach ${n}, concurrency ${n}`,
      group: 'fan-out',
      note: 'per item',
      unit: 'us',
      ops: n,
      samples: 7,
      warmup: 1,
      setup: () => box(fan(n)),
      fn: (w) =>
        run(
          w,
          Array.from({ length: n }, (_, i) => ({ n: i })),
        ),
    })),
    ...[0, 1, 5].map((k) => ({
      id: `Agent.generate, ${k} in + ${k} out processors`,
      series: 'input + output processor',
      k,
      group: 'agent 10 tool rounds',
      unit: 'ms',
      ops: 1,
      samples: 11,
      warmup: 3,
      setup: () => agent(k),
      fn: async (a) => {
        const r = await a.generate('go', { maxSteps: 50 })
        if (r.text !== 'the final answer')
          throw new Error(`text ${JSON.stringify(r.text)} steps ${r.steps?.length} ${r.error ?? ''}`)
        if (r.steps.length !== ROUNDS + 1) throw new Error(`steps ${r.steps.length}`)
      },
    })),
    ...[0, 1, 5].map((k) => ({
      id: `Agent.stream, ${k} output processors`,
      series: 'output stream processor',
      k,
      group: 'stream 10000 chunks',
      unit: 'chunks/s',
      rate: true,
      ops: 10000,
      samples: 3,
      warmup: 1,
      setup: () =>
        new Agent({
          id: 'a',
          name: 'a',
          instructions: 'x',
          model: chunks(),
          ...(k ? { outputProcessors: outProcs(k) } : {}),
        }),
      fn: async (a) => {
        const s = await a.stream('go')
        let n = 0
        for await (const _ of s.textStream) n++
        if (n < 10000) throw new Error(`only ${n}`)
      },
    })),
  ]
}
