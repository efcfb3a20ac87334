// Own middleware that says nothing: what it adds to a superstep, to an agent's round, and to a stream.
import {
  agentNode,
  createRuntime,
  END,
  graph,
  messages,
  middleware,
  modelNode,
  node,
  START,
  state,
  tool,
} from '@sluice/core'
import { z } from 'zod'
import { interleaved, row } from '../lib/measure.mjs'

const HOOKS = [
  'beforeNode',
  'afterNode',
  'beforeRound',
  'afterRound',
  'beforeModel',
  'afterModel',
  'beforeTool',
  'afterTool',
]

const silent = (count, hook) =>
  Array.from({ length: count }, (_, i) =>
    middleware({ name: `silent${i}`, ...Object.fromEntries(HOOKS.map((name) => [name, hook])) }),
  )
const sync = () => undefined
const later = async () => undefined

const runtime = createRuntime({ limits: { maxToolRounds: 200, maxIterations: 1e9 } })

const Conversation = state({ messages: messages() })
const TEXT = 'x'.repeat(1_000)
const lookup = tool('lookup', { description: 'Looks up.', input: z.object({ q: z.string() }), run: () => TEXT })
const ROUNDS = 10

const call = {
  content: TEXT,
  finish_reason: 'tool_calls',
  tool_calls: [{ id: 'c', name: 'lookup', arguments: '{"q":"a"}' }],
}
const answer = { content: TEXT, finish_reason: 'stop' }
const model = { model: 'bench', chat: async ({ messages: said }) => (said.length > ROUNDS * 2 ? answer : call) }
const input = { messages: [{ role: 'user', content: 'go' }] }

function agent(own) {
  const think = agentNode('think', Conversation, { model, tools: [lookup] })
  return graph('agent', Conversation, { middleware: own }).edge(START, think).edge(think, END).check()
}

async function rounds() {
  const agents = {
    none: agent([]),
    one: agent(silent(1, sync)),
    ten: agent(silent(10, sync)),
    twenty: agent(silent(20, sync)),
    oneLater: agent(silent(1, later)),
    twentyLater: agent(silent(20, later)),
  }
  const works = Object.fromEntries(Object.entries(agents).map(([name, made]) => [name, () => runtime.run(made, input)]))
  const took = await interleaved(works, { ops: ROUNDS, samples: 101, warmups: 60 })
  const slope = (from, to) => ({
    median: (took[to].median - took[from].median) / 20,
    best: (took[to].best - took[from].best) / 20,
  })
  const [plain, promising] = [slope('none', 'twenty'), slope('none', 'twentyLater')]
  const ratio = (took.ten.best - took.none.best) / (took.one.best - took.none.best)
  const round = (name, { median, best }, most) =>
    row('one no-op middleware, all hooks, a round', `${name} (slope from 0 to 20)`, median, 'µs', {
      best,
      goal: `≤ ${most}`,
      holds: best <= most,
    })
  return [
    round('sync', plain, 0.5),
    round('async', promising, 1),
    row('one no-op middleware, all hooks, a round', 'sync, the first one', took.one.median - took.none.median, 'µs', {
      best: took.one.best - took.none.best,
    }),
    row('ten no-op middleware', 'against one', ratio, '×', { goal: '≤ 10', holds: ratio <= 10 }),
  ]
}

const STEPS = 20_000

function loop(own) {
  const State = state({ n: z.number().default(0) })
  const step = node('step', State, (s) => ({ n: s.n + 1 }))
  return graph('loop', State, { middleware: own })
    .edge(START, step)
    .when(step, (s) => s.n < STEPS, { then: step, otherwise: END })
    .check()
}

async function supersteps() {
  const [none, one] = [loop([]), loop(silent(1, sync))]
  const took = await interleaved({ none: () => runtime.run(none, {}), one: () => runtime.run(one, {}) }, { ops: STEPS })
  return [
    row('superstep, no store', 'one no-op middleware', took.one.median, 'µs', {
      best: took.one.best,
      floor: took.none.median,
    }),
  ]
}

const CHUNKS = 20_000
const chunk = { content: 'word ' }
const streaming = {
  model: 'bench',
  chat: async () => answer,
  stream: () => {
    let left = CHUNKS
    const done = Promise.resolve({ done: true, value: undefined })
    const next = Promise.resolve({ done: false, value: chunk })
    return { [Symbol.asyncIterator]: () => ({ next: () => (left-- > 0 ? next : done) }) }
  },
}

async function streams() {
  const say = modelNode('say', Conversation, { model: streaming })
  const made = graph('stream', Conversation, { middleware: silent(1, sync) })
    .edge(START, say)
    .edge(say, END)
    .check()
  const floor = async () => {
    for await (const _ of streaming.stream());
  }
  const watched = async () => {
    for await (const _ of runtime.stream(made, input));
  }
  const took = await interleaved({ floor, watched }, { ops: CHUNKS })
  return [
    row('stream, chunks', 'one middleware', 1 / took.watched.median, 'M/s', {
      best: 1 / took.watched.best,
      floor: 1 / took.floor.median,
      goal: '≥ 3',
      holds: 1 / took.watched.best >= 3,
    }),
  ]
}

export default async function cost() {
  return [...(await rounds()), ...(await supersteps()), ...(await streams())]
}
