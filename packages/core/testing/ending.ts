import {
  agentLoop,
  END,
  graph,
  makeNode,
  messages,
  type Node,
  type NodeContext,
  node,
  START,
  type StateOf,
  scripted,
  state,
  toolNode,
  type UpdateFor,
} from '../src/index.ts'
import { noting, type Shown, says, settle, Text } from './play.ts'

const Talk = state({ messages: messages() })
type Talk = StateOf<typeof Talk>
type TalkNode = Node<Talk, UpdateFor<typeof Talk>>

const ASKS_FOR_ACT = {
  role: 'assistant',
  content: '',
  tool_calls: [{ id: 'call-1', name: 'act', arguments: '{"text":"x"}' }],
} as const

/** The steps of the table, each in a node `step`. What that node catches of its calls goes to `caught`. */
const STEPS: { readonly [of: string]: (caught: unknown[]) => TalkNode } = {
  "a call of an agent's round": agentStep,
  "an agent's model call": agentStep,
  'a round': agentStep,
  'a round that ran tools': agentStep,
  "a call in code's toolNode": () => toolNode('step', Talk, { tools: [noting()] }),
  'a ctx.callTool, and the node lets it out': () => step((ctx) => ctx.callTool(noting(), { text: 'x' })),
  'a ctx.callTool, and the node catches it': catchingStep((ctx) => ctx.callTool(noting(), { text: 'x' })),
  'a ctx.callTool, and the node catches everything': catchingStep((ctx) => ctx.callTool(noting(), { text: 'x' })),
  "a policy's ctx.runTool, and the policy catches it": () => step(async () => undefined),
  'a node': () => step(async () => undefined),
  'a node that succeeded': () => step(async () => undefined),
  'a node that failed': () => step(() => Promise.reject(new Error('the step fails'))),
  'a child run, and the node catches everything': catchingStep((ctx) => ctx.run(innermost, {})),
}

const inside = node('inside', Text, () => undefined)
const innermost = graph('innermost', Text).edge(START, inside).edge(inside, END).check()

function agentStep(): TalkNode {
  return makeNode<Talk, UpdateFor<typeof Talk>>('AgentNode', 'step', async (_state, ctx) => {
    const model = scripted([{ tool_calls: [{ name: 'act', arguments: { text: 'x' } }] }, 'done'])
    return { messages: (await agentLoop(ctx, { model, tools: [noting()], messages: [] })).messages }
  })
}

function step(run: (ctx: NodeContext) => Promise<unknown>): TalkNode {
  return makeNode<Talk, UpdateFor<typeof Talk>>('Node', 'step', async (_state, ctx) => {
    await run(ctx)
  })
}

function catchingStep(run: (ctx: NodeContext) => Promise<unknown>): (caught: unknown[]) => TalkNode {
  return (caught) => step((ctx) => run(ctx).catch((error) => caught.push(error)))
}

const ANSWERS: { readonly [verdict: string]: () => unknown } = {
  reject: () => ({ action: 'reject', reason: 'because' }),
  fail: () => ({ action: 'fail', reason: 'because' }),
  replace: () => ({ action: 'replace', value: {} }),
  'its policy throws': () => {
    throw new Error('the policy is broken')
  },
}

/** What became of a step, in the words of the golden table. */
export interface Ending {
  readonly comesTo: string
  readonly nodeError: string
  readonly nodeAfter: string
  readonly error: unknown
}

/** Lets one policy judge a step of a child graph, and watches what becomes of the node it stands in. */
export async function playEnding(seam: string, verdict: string, of: string): Promise<Ending> {
  const caught: unknown[] = []
  const caughtByPolicy: unknown[] = []
  let talk: readonly { readonly content: string }[] = []
  const under = STEPS[of]?.(caught) as TalkNode
  const child = graph('child', Talk).edge(START, under).edge(under, END).check()
  const caller = node('caller', Text, async (_state, ctx) => {
    try {
      talk = (await ctx.run(child, { messages: [ASKS_FOR_ACT] })).messages
    } catch (error) {
      caught.push(error)
    }
  })
  const parent = graph('parent', Text).edge(START, caller).edge(caller, END).check()
  const watch = says('watch', { 'nodeError.after': { action: 'pass' }, 'node.after': { action: 'pass' } })
  const policies = [gateAt(seam, verdict), asker(of, caughtByPolicy), watch]
  const { status, error } = await settle({ graph: parent, policies, tools: [noting(undefined, 'inner')] })
  const about = watch.asked.filter(({ subject }) => subject.nodeName === 'step')
  const after = about.find(({ at }) => at === 'node.after')?.outcome
  return {
    comesTo: inWords(status, talk, caught, caughtByPolicy),
    nodeError: about.some(({ at }) => at === 'nodeError.after') ? 'yes' : 'no',
    nodeAfter: after === undefined ? 'no' : `about a node that ${after.ok ? 'succeeded' : 'failed'}`,
    error,
  }
}

/** Judges the step, and at `run` and `node` nothing of what stands around it. */
function gateAt(seam: string, verdict: string) {
  const plain = { action: seam.endsWith('before') ? 'proceed' : 'pass' }
  return says('gate', {
    [seam]: ({ subject }: Shown) =>
      [subject.graphName ?? 'innermost', subject.nodeName ?? 'step'].join() === 'innermost,step'
        ? ANSWERS[verdict]?.()
        : plain,
  })
}

/** A policy that makes a call of its own before the step. */
function asker(of: string, caught: unknown[]) {
  return says('asker', {
    'node.before': async ({ subject }, ctx) => {
      if (of.startsWith("a policy's") && subject.nodeName === 'step')
        await ctx.runTool('inner', { text: 'x' }).catch((error) => caught.push(error))
      return { action: 'proceed' }
    },
  })
}

function inWords(
  status: string,
  talk: readonly { readonly content: string }[],
  caught: readonly unknown[],
  caughtByPolicy: readonly unknown[],
): string {
  if (status === 'failed') return 'a stop'
  if (caughtByPolicy.length > 0) return 'an error in the policy'
  if (caught.length > 0) return 'an error in the node'
  return talk.some(({ content }) => content === 'Refused: because') ? 'a tool message with the reason' : 'a result'
}
