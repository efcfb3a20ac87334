// A run with everything that is written down: an agent, parallel tasks, tools, policies, own middleware, asks, a retry, a run
// within a run.
// Whatever it does outside it writes to a file first, one line for each effect, so that they can be counted.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import {
  agentNode,
  append,
  command,
  createRuntime,
  END,
  graph,
  graphNode,
  messages,
  middleware,
  node,
  policy,
  reduced,
  START,
  send,
  state,
  tool,
} from '@sluice/core'
import { z } from 'zod'

const sum = reduced(z.number().default(0), (current, update) => (current ?? 0) + update)
const State = state({ messages: messages(), log: append(z.string()), total: sum, item: z.number().default(0) })
const Inner = state({ log: append(z.string()) })

/** Everything that must have happened once and no more when the run has completed. */
export const EFFECTS = [
  'charge agent-a',
  'charge agent-b',
  'charge flaky-1',
  'charge flaky-2',
  'charge inner',
  'charge send-1',
  'charge send-2',
  'charge send-3',
  'stamp',
]

/** @param file where effects are counted */
export function scenario(file, store) {
  const effect = (line) => appendFileSync(file, `${line}\n`)
  const charge = tool('charge', {
    description: 'Takes money, once.',
    input: z.object({ id: z.string() }),
    run: ({ id }) => {
      effect(`charge ${id}`)
      return `charged ${id}`
    },
  })
  const look = tool('look', {
    description: 'Looks, as often as one likes.',
    input: z.object({ id: z.string() }),
    idempotent: true,
    run: ({ id }) => `saw ${id}`,
  })
  const agent = agentNode('agent', State, { model: model(effect), tools: [charge, look] })
  const fan = node(
    'fan',
    State,
    () =>
      command({ goto: [send(pay, { item: 1 }), send(pay, { item: 2 }), send(pay, { item: 3 }), review, flaky, inner] }),
    { goto: ['pay', 'review', 'flaky', 'inner'] },
  )
  const pay = node('pay', State, async (s, ctx) => {
    const result = await ctx.callTool(charge, { id: `send-${s.item}` })
    return { log: [result], total: s.item }
  })
  const review = node('review', State, async (_s, ctx) => {
    const [first, second] = await Promise.all([ctx.ask('first', 'One?'), ctx.once('stamp', () => stamp(effect))])
    return { log: [`${first} ${second} ${await ctx.ask('second', 'Two?')}`], total: 10 }
  })
  const flaky = node('flaky', State, async (_s, ctx) => {
    const result = await ctx.callTool(charge, { id: `flaky-${ctx.attempt}` })
    if (ctx.attempt === 1) throw new Error('try me again')
    return { log: [result], total: 100 }
  })
  const inner = graphNode('inner', State, innerGraph(charge, look), { share: ['log'] })
  const join = node('join', State, async (s, ctx) => ({
    log: [`${await ctx.callTool(look, { id: 'end' })} ${s.total}`],
  }))
  const main = graph('crash', State, { middleware: [tally, ownGate, again] })
    .edge(START, agent)
    .edge(agent, fan)
    .edge(join, END)
  for (const each of [pay, review, flaky, inner]) main.edge(each, join)
  return { runtime: createRuntime({ store, policies: [audit, gate, retry] }), graph: main.check() }
}

function innerGraph(charge, look) {
  const first = node('first', Inner, async (_s, ctx) => ({ log: [await ctx.callTool(look, { id: 'inner' })] }))
  const last = node('last', Inner, async (_s, ctx) => {
    const charged = await ctx.callTool(charge, { id: 'inner' })
    return { log: [`${charged} ${await ctx.ask('sure', 'Sure?')}`] }
  })
  return graph('inner', Inner).edge(START, first).edge(first, last).edge(last, END).check()
}

function stamp(effect) {
  effect('stamp')
  return 'stamped'
}

/** Asks for two tools at once, then for one, then answers. */
const model = (effect) => ({
  model: 'small',
  chat: async ({ messages: said }) => {
    const answered = said.filter(({ role }) => role === 'tool').length
    effect(`model ${answered}`)
    const call = (id, name) => ({ id, name, arguments: JSON.stringify({ id }) })
    const ask = (tool_calls) => ({ content: '', finish_reason: 'tool_calls', tool_calls })
    if (answered === 0) return ask([call('agent-a', 'charge'), call('agent-l', 'look')])
    return answered === 2 ? ask([call('agent-b', 'charge')]) : { content: 'done', finish_reason: 'stop' }
  },
})

const audit = policy({
  name: 'Audit',
  seams: {
    toolCall: { before: () => ({ action: 'proceed', labels: ['audited'] }), after: () => ({ action: 'pass' }) },
    modelCall: { after: () => ({ action: 'pass' }) },
  },
})

const gate = policy({
  name: 'Gate',
  seams: {
    toolCall: {
      before: ({ input }, ctx) =>
        input.id === 'agent-b' && ctx.answered !== 'yes'
          ? { action: 'suspend', ask: { question: 'May it?' } }
          : { action: 'proceed' },
    },
  },
})

/** Counts tool calls over the whole turn, those of the agent and of every node; the last node tells. */
const tally = middleware({
  name: 'Tally',
  kept: { scope: 'turn', schema: z.object({ calls: z.number().default(0) }) },
  beforeTool: (ctx) => {
    if (!ctx.revisit) ctx.kept.update(({ calls }) => ({ calls: calls + 1 }))
  },
  afterNode: (ctx) =>
    ctx.nodeName === 'join' ? ctx.replace({ log: [...ctx.state.log, `${ctx.kept.value.calls} calls`] }) : undefined,
})

const ownGate = middleware({
  name: 'OwnGate',
  beforeTool: (ctx) =>
    ctx.args.id === 'send-2' && ctx.answered !== 'yes' ? ctx.suspend({ question: 'May it, too?' }) : undefined,
})

/** Makes a failed tool call once more; a call that is entered anew has its trips handed back. */
const again = middleware({
  name: 'Again',
  wrapTool: async (args, next) => {
    const outcome = await next(args)
    return outcome.ok || outcome.refused ? outcome : next(args)
  },
})

const retry = policy({
  name: 'Retry',
  seams: {
    nodeError: { after: ({ outcome }) => ({ action: /again/.test(outcome.error.message) ? 'retry' : 'pass' }) },
  },
})

/** How often each effect has happened. */
export function effectsIn(file) {
  const counts = new Map()
  if (!existsSync(file)) return counts
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line !== '') counts.set(line, (counts.get(line) ?? 0) + 1)
  }
  return counts
}

/** What a person answers who looks first whether a call that was cut off has done its work. */
export function answersTo(asks, file) {
  const done = effectsIn(file)
  return Object.fromEntries(
    asks.map((ask) => [ask.key, ask.askedBy === 'engine' ? verdictOn(ask.payload, done) : 'yes']),
  )
}

function verdictOn({ once, arguments: args }, done) {
  const line = once ?? `charge ${args.id}`
  if (!done.has(line)) return 'retry'
  return { result: once === undefined ? `charged ${args.id}` : 'stamped' }
}

/** Takes a thread one step on: begins, answers or continues it, however it stands. */
export async function step({ runtime, graph: work }, thread, file) {
  const [line] = await runtime.branches(thread)
  if (line === undefined) return runtime.run(work, {}, { thread })
  if (line.status !== 'paused') return runtime.continue(work, thread)
  return runtime.resume(work, thread, answersTo(JSON.parse(line.asks), file))
}

/** Takes a thread to its end; says what it came to. */
export async function finish(made, thread, file) {
  for (;;) {
    const [line] = await made.runtime.branches(thread)
    if (line?.status === 'completed') return (await made.runtime.stateAt(made.graph, thread)).state
    await step(made, thread, file)
  }
}
