// Our own figures, in the same run as our peers'. Needs `npm run build` in the root.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import {
  agentNode,
  createRuntime,
  END,
  graph,
  messages,
  middleware,
  modelNode,
  policy,
  START,
  state,
  tool,
} from '../../../packages/core/dist/index.js'
import { loadPlugins } from '../../../packages/host/dist/index.js'
import { ROUNDS } from '../lib/fixtures.mjs'

export const meta = { subject: 'sluice', packages: [] }

const Conversation = state({ messages: messages() })
const runtime = createRuntime({ limits: { maxToolRounds: 50 } })
const input = { messages: [{ role: 'user', content: 'go' }] }

const lookup = tool('lookup', {
  description: 'Looks a thing up',
  input: z.object({ q: z.string() }),
  run: async ({ q }) => `result for ${q}`,
})

const roundsModel = {
  model: 'fake',
  chat: async ({ messages: said }) => {
    const done = said.filter(({ role }) => role === 'tool').length
    if (done === ROUNDS) return { content: 'the final answer', finish_reason: 'stop' }
    const tool_calls = [{ id: `call_${done}`, name: 'lookup', arguments: JSON.stringify({ q: `question ${done}` }) }]
    return { content: '', finish_reason: 'tool_calls', tool_calls }
  },
}

const chunksModel = (n) => ({
  model: 'fake',
  chat: async () => ({ content: '', finish_reason: 'stop' }),
  async *stream() {
    for (let i = 0; i < n; i++) yield { content: 'tok ' }
    yield { finish_reason: 'stop' }
  },
})

/** A hook at every place, as our peers' middleware have them. */
const noop = (k, hook) =>
  Array.from({ length: k }, (_, i) =>
    middleware({
      name: `noop${i}`,
      beforeNode: hook,
      afterNode: hook,
      beforeRound: hook,
      afterRound: hook,
      beforeModel: hook,
      afterModel: hook,
      beforeTool: hook,
      afterTool: hook,
    }),
  )
const wraps = (k) =>
  Array.from({ length: k }, (_, i) =>
    middleware({ name: `wrap${i}`, wrapModel: (request, next) => next(request), wrapTool: (args, next) => next(args) }),
  )

function agent(own) {
  const think = agentNode('think', Conversation, { model: roundsModel, tools: [lookup], maxRounds: 50 })
  return { made: graph('agent', Conversation, { middleware: own }).edge(START, think).edge(think, END).check() }
}

const LIMITS = { maxToolRounds: 50 }
const SEAMS = { toolCall: ['before'], modelCall: ['before'] }

/** A policy in this process that decides each of these calls. */
function judgedHere(seams) {
  const before = async () => ({ action: 'proceed' })
  const handlers = Object.fromEntries(seams.map((seam) => [seam, { before }]))
  return { runtime: createRuntime({ limits: LIMITS, policies: [policy({ name: 'Gate', seams: handlers })] }) }
}

/** The same policy in a process of its own. */
async function judgedElsewhere(seams) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-peers-'))
  const component = {
    componentType: 'Gate',
    kind: 'middleware',
    seams: Object.fromEntries(seams.map((seam) => [seam, SEAMS[seam]])),
  }
  writeFileSync(join(folder, 'gate.json'), JSON.stringify({ name: 'gate', version: '1.0.0', components: [component] }))
  const handlers = seams.map((seam) => `${seam}: { before: () => ({ action: 'proceed' }) }`).join(', ')
  writeFileSync(join(folder, 'gate.mjs'), `serve({ Gate: { ${handlers} } })`)
  const plugins = await loadPlugins([join(folder, 'gate.json')])
  const close = async () => {
    await plugins.close()
    rmSync(folder, { recursive: true })
  }
  return { runtime: createRuntime({ limits: LIMITS, policies: plugins.policies }), close }
}

async function run({ made, runtime: on = runtime }) {
  const { state: end } = await on.run(made, input)
  if (end.messages.length !== 2 * ROUNDS + 2) throw new Error(`messages ${end.messages.length}`)
}

export async function cases() {
  const base = { group: 'agent 10 tool rounds', unit: 'ms', ops: 1, samples: 61, warmup: 30 }
  const series = (name, counts, make) =>
    counts.map((k) => ({ ...base, id: `${name}, ${k}`, series: name, k, setup: () => agent(make(k)), fn: run }))
  return [
    ...series('middleware, all hooks, sync', [0, 1, 5, 10, 20], (k) => noop(k, () => undefined)),
    ...series('middleware, all hooks, async', [0, 1, 5, 10, 20], (k) => noop(k, async () => undefined)),
    ...series('wrapModel and wrapTool', [0, 1, 5, 10], wraps),
    ...Object.entries({ 'tool calls': ['toolCall'], 'tool+model calls': ['toolCall', 'modelCall'] }).flatMap(
      ([calls, seams]) =>
        [
          ['in process', judgedHere],
          ['out of process', judgedElsewhere],
        ].map(([where, judged]) => ({
          ...base,
          id: `decides ${calls}: policy ${where}`,
          setup: async () => ({ ...agent([]), ...(await judged(seams)) }),
          fn: run,
          teardown: ({ close }) => close?.(),
        })),
    ),
    ...[0, 1, 5].map((k) => ({
      id: `stream, ${k} middleware`,
      series: 'one middleware, all hooks',
      k,
      group: 'stream 10000 chunks',
      unit: 'chunks/s',
      rate: true,
      ops: 10000,
      samples: 5,
      warmup: 3,
      setup: () => {
        const say = modelNode('say', Conversation, { model: chunksModel(10000) })
        const own = noop(k, () => undefined)
        return { made: graph('stream', Conversation, { middleware: own }).edge(START, say).edge(say, END).check() }
      },
      fn: async ({ made }) => {
        let n = 0
        for await (const event of runtime.stream(made, input, { mode: 'tokens' })) if (event.type === 'token') n++
        if (n < 10000) throw new Error(`only ${n}`)
      },
    })),
  ]
}
