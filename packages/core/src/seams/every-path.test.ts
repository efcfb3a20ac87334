import { describe, expect, it } from 'vitest'
import { noting, oneNode, says, settle, Text } from '../../testing/play.ts'
import {
  type AnyNode,
  agentNode,
  createRuntime,
  END,
  type Graph,
  graph,
  graphNode,
  MemoryStore,
  messages,
  modelNode,
  type NodeContext,
  type Policy,
  START,
  scripted,
  state,
  toolNode,
} from '../index.ts'

const Talk = state({ messages: messages() })
const CALL = {
  role: 'assistant',
  content: '',
  tool_calls: [{ id: 'c-1', name: 'act', arguments: '{"text":"x"}' }],
} as const
const HELLO = { role: 'user', content: 'hello' } as const

/** Any graph, its types put aside: only its calls matter here. */
const plain = (graph: object) => graph as Graph<never, never>

const oneStep = (step: object) =>
  graph('one', Talk)
    .edge(START, step as AnyNode)
    .edge(step as AnyNode, END)
    .check()

const act = () => noting()
const asks = { tool_calls: [{ name: 'act', arguments: { text: 'x' } }] }

interface Path {
  readonly name: string
  readonly graph: () => object
  readonly input?: object
  readonly policies?: readonly Policy[]
  readonly caller?: string
  readonly nodeType: string
}

const failsOnce = (call: (ctx: Parameters<Parameters<typeof oneNode>[0]>[1]) => Promise<unknown>) => {
  let attempts = 0
  return oneNode(async (_state, ctx) => {
    if (++attempts === 1) throw new Error('before its call')
    await call(ctx)
  })
}

const TOOL_PATHS: readonly Path[] = [
  {
    name: 'an agent’s round',
    graph: () => oneStep(agentNode('step', Talk, { model: scripted([asks, 'done']), tools: [act()] })),
    caller: 'model',
    nodeType: 'AgentNode',
  },
  {
    name: 'ctx.callTool in a node',
    graph: () => oneNode((_state, ctx) => ctx.callTool(act(), { text: 'x' }).then(() => undefined)),
    caller: 'node',
    nodeType: 'Node',
  },
  {
    name: 'a toolNode',
    graph: () => oneStep(toolNode('step', Talk, { tools: [act()] })),
    input: { messages: [CALL] },
    caller: 'model',
    nodeType: 'ToolNode',
  },
  {
    name: 'a sub-graph that a node runs',
    graph: () => {
      const inner = oneNode((_state, ctx) => ctx.callTool(act(), { text: 'x' }).then(() => undefined))
      return oneNode((_state, ctx) => ctx.run(inner, {}).then(() => undefined))
    },
    caller: 'node',
    nodeType: 'Node',
  },
  {
    name: 'a graph that is a node',
    graph: () => {
      const inner = oneNode((_state, ctx) => ctx.callTool(act(), { text: 'x' }).then(() => undefined))
      const asNode = graphNode('inner', Text, inner, { share: ['made'] })
      return graph('outer', Text).edge(START, asNode).edge(asNode, END).check()
    },
    caller: 'node',
    nodeType: 'Node',
  },
  {
    name: 'a sub-agent',
    graph: () => {
      const inner = oneNode((_state, ctx) => ctx.callTool(act(), { text: 'x' }).then(() => undefined))
      return oneNode(async (_state, ctx) => {
        await ctx.gather(ctx.spawn([{ graph: inner }]))
      })
    },
    caller: 'node',
    nodeType: 'Node',
  },
  {
    name: 'a retry of the node',
    graph: () => failsOnce((ctx) => ctx.callTool(act(), { text: 'x' })),
    policies: [says('RetryPolicy', { 'nodeError.after': { action: 'retry' } })],
    caller: 'node',
    nodeType: 'Node',
  },
  {
    name: 'a policy’s ctx.runTool',
    graph: () => oneNode(() => undefined),
    policies: [
      says('Asker', {
        'node.before': async (_, ctx) => {
          await ctx.runTool('act', { text: 'x' })
          return { action: 'proceed' }
        },
      }),
    ],
    caller: 'middleware',
    nodeType: 'Node',
  },
]

const ask = (model = scripted(['hi'])) =>
  oneNode((_state, ctx) => ctx.callModel(model, { messages: [HELLO] }).then(() => undefined))

const MODEL_PATHS: readonly Path[] = [
  {
    name: 'an agent’s round',
    graph: () => oneStep(agentNode('step', Talk, { model: scripted(['done']) })),
    nodeType: 'AgentNode',
  },
  { name: 'ctx.callModel in a node', graph: () => ask(), nodeType: 'Node' },
  {
    name: 'a modelNode',
    graph: () => oneStep(modelNode('step', Talk, { model: scripted(['hi']) })),
    nodeType: 'ModelNode',
  },
  {
    name: 'a sub-graph that a node runs',
    graph: () => oneNode((_state, ctx) => ctx.run(ask(), {}).then(() => undefined)),
    nodeType: 'Node',
  },
  {
    name: 'a graph that is a node',
    graph: () => {
      const asNode = graphNode('inner', Text, ask(), { share: ['made'] })
      return graph('outer', Text).edge(START, asNode).edge(asNode, END).check()
    },
    nodeType: 'Node',
  },
  {
    name: 'a sub-agent',
    graph: () =>
      oneNode(async (_state, ctx) => {
        await ctx.gather(ctx.spawn([{ graph: ask() }]))
      }),
    nodeType: 'Node',
  },
  {
    name: 'a retry of the node',
    graph: () => failsOnce((ctx) => ctx.callModel(scripted(['hi']), { messages: [HELLO] })),
    policies: [says('RetryPolicy', { 'nodeError.after': { action: 'retry' } })],
    nodeType: 'Node',
  },
  {
    name: 'a policy’s ctx.callModel',
    graph: () => oneNode(() => undefined),
    policies: [
      says(
        'Asker',
        {
          'node.before': async (_, ctx) => {
            await ctx.callModel({ messages: [HELLO] })
            return { action: 'proceed' }
          },
        },
        { model: scripted(['hi']) },
      ),
    ],
    nodeType: 'Node',
  },
]

describe.each([
  { seam: 'toolCall', paths: TOOL_PATHS },
  { seam: 'modelCall', paths: MODEL_PATHS },
] as const)('A10: every path to $seam passes each policy once in each half', ({ seam, paths }) => {
  it.each(paths)('$name', async ({ graph, input, policies = [], caller, nodeType }) => {
    const watch = says('Watch', {
      [`${seam}.before`]: { action: 'proceed' },
      [`${seam}.after`]: { action: 'pass' },
    } as object)
    await settle({ graph: plain(graph()), input: input as never, policies: [...policies, watch], tools: [act()] })
    expect(watch.asked.map(({ at, subject }) => [at, subject.nodeName, subject.nodeType, subject.caller])).toEqual([
      [`${seam}.before`, 'step', nodeType, caller],
      [`${seam}.after`, 'step', nodeType, caller],
    ])
  })

  it.each(paths)('and the same in a streamed run: $name', async ({ graph, input, policies = [] }) => {
    const watch = says('Watch', {
      [`${seam}.before`]: { action: 'proceed' },
      [`${seam}.after`]: { action: 'pass' },
    } as object)
    const runtime = createRuntime({ policies: [...policies, watch], tools: [act()] })
    for await (const _ of runtime.stream(plain(graph()), input as never));
    expect(watch.asked.map(({ at }) => at)).toEqual([`${seam}.before`, `${seam}.after`])
  })
})

it.each([
  { seam: 'toolCall', call: (ctx: NodeContext) => ctx.callTool(act(), { text: 'x' }) },
  { seam: 'modelCall', call: (ctx: NodeContext) => ctx.callModel(scripted(['hi']), { messages: [HELLO] }) },
] as const)('A10: and so does $seam after a resume and after a continue', async ({ seam, call }) => {
  const watching = () =>
    says('Watch', { [`${seam}.before`]: { action: 'proceed' }, [`${seam}.after`]: { action: 'pass' } } as object)
  const asking = oneNode(async (_state, ctx) => {
    await ctx.ask('in', 'May it?')
    await call(ctx)
  })
  const store = new MemoryStore()
  await createRuntime({ store, policies: [watching()] }).run(asking, {}, { thread: 'asking' })
  const resumed = watching()
  await createRuntime({ store, policies: [resumed] }).resume(asking, 'asking', true)

  let broken = true
  const failing = oneNode(async (_state, ctx) => {
    if (broken) throw new Error('not yet')
    await call(ctx)
  })
  await createRuntime({ store, policies: [watching()] }).settle(failing, {}, { thread: 'failing' })
  broken = false
  const continued = watching()
  await createRuntime({ store, policies: [continued] }).continue(failing, 'failing')
  for (const { asked } of [resumed, continued])
    expect(asked.map(({ at }) => at)).toEqual([`${seam}.before`, `${seam}.after`])
})

it('A10: a policy that refuses is obeyed on every path', async () => {
  for (const { graph, input, policies = [] } of TOOL_PATHS) {
    const gate = says('Gate', {
      'toolCall.before': { action: 'reject', reason: 'no' },
      'toolCall.after': { action: 'pass' },
    })
    const events: string[] = []
    const runtime = createRuntime({ policies: [...policies, gate], tools: [act()] })
    for await (const { type } of runtime.stream(plain(graph()), input as never)) events.push(type)
    expect(new Set(gate.asked.map(({ at }) => at))).toEqual(new Set(['toolCall.before']))
    expect(events).not.toContain('tool_call')
    expect(events).toContain('tool_result')
  }
})
