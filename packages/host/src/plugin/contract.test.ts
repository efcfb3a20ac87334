import {
  agentNode,
  command,
  END,
  graph,
  type JsonObject,
  MiddlewareError,
  messages,
  node,
  type Policy,
  type RunEvent,
  type RunOutcome,
  START,
  scripted,
  state,
} from '@sluice/core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Clock } from '../../../core/testing/clock.ts'
import { eventsOf, noting, oneNode, settle, Text, type TextGraph, trying } from '../../../core/testing/play.ts'
import { loadPlugins } from '../plugins/load.ts'
import type { Plugins } from '../plugins/plugins.ts'
import { components } from '../testing/contract.mjs'
import { suiteFolderOf } from '../testing/folder.ts'
import { pluginFile, ROUTES } from '../testing/routes.ts'
import { builtRuntime } from '../testing/runtime.ts'

const runtime = builtRuntime()
const handlers = new URL('../testing/contract.mjs', import.meta.url).href

/** What a run came to, as far as policies have a hand in it. */
interface Played {
  readonly status: string
  readonly state: JsonObject | undefined
  readonly error: unknown
  readonly warnings: readonly string[]
  readonly events: readonly RunEvent[]
}

type Limits = Parameters<typeof settle>[0]['limits']

/** One behaviour: which policies, in load order, on what, and what is seen of it. */
interface Case {
  readonly name: string
  readonly policies: readonly string[]
  /** A graph for each run, and what its parts have noted by the end. */
  readonly on: () => { readonly graph: object; readonly noted?: () => unknown }
  readonly limits?: Limits
  readonly sees: (played: Played, noted: unknown) => unknown
  readonly is: unknown
}

// What policies are consulted on.

function failing(times = Number.POSITIVE_INFINITY) {
  let attempts = 0
  const step = oneNode(() => {
    if (++attempts <= times) throw new Error(`failure ${attempts}`)
    return { made: `attempt ${attempts}` }
  })
  return { graph: step, noted: () => attempts }
}

/** A node that makes what it was given, or what it made of it. */
const echo = () => ({ graph: oneNode(({ text }) => ({ made: text })) })

/** A node whose every edge has a label. */
const routing = () => {
  const choose = node('step', Text, () => command({ update: {}, branch: 'hot' }))
  const edges = graph('one', Text).edge(START, choose).edge(choose, END, { branch: 'hot' })
  return { graph: edges.edge(choose, END, { branch: 'cold' }).check() }
}

/** A node that fails every other time, and is arrived at twice. */
function loop() {
  let runs = 0
  const step = node('step', Text, () => {
    if (++runs % 2 === 1) throw new Error('every other time')
    return { text: `${runs}` }
  })
  const twice = graph('one', Text)
    .edge(START, step)
    .when(step, ({ text }) => text === '4', { then: END, otherwise: step })
  return { graph: twice.check() }
}

/** A node that fails, and whose every edge has a label. */
const lost = () => {
  const choose = node('step', Text, () => {
    throw new Error('no idea')
  })
  const edges = graph('one', Text).edge(START, choose).edge(choose, END, { branch: 'hot' })
  return { graph: edges.edge(choose, END, { branch: 'cold' }).check() }
}

/** A node that would take its hot edge, beside one without a label. */
const forking = () => {
  const [hot, cold] = ['hot', 'cold'].map((made) => node(made, Text, () => ({ made }))) as [typeof end, typeof end]
  const choose = node('step', Text, () => command({ update: {}, branch: 'hot' }))
  const edges = graph('one', Text).edge(START, choose).edge(choose, hot, { branch: 'hot' }).edge(choose, cold)
  return { graph: edges.edge(hot, END).edge(cold, END).check() }
}
const end = node('end', Text, () => ({}))

const Talk = state({ messages: messages() })

/** An agent that asks for a tool in so many rounds, and then answers. */
function agent(rounds = 1, run?: () => unknown) {
  const act = noting(run)
  const asks = { tool_calls: [{ name: 'act', arguments: { text: 'x' } }] }
  const model = scripted([...Array.from({ length: rounds }, () => asks), 'done'])
  const step = agentNode('agent', Talk, { model, tools: [act] })
  return {
    graph: graph('talk', Talk).edge(START, step).edge(step, END).check(),
    noted: () => ({ ran: act.ran, requests: model.requests.length }),
  }
}

/** A node that asks a model once, and keeps what the call came to. */
function asking(...replies: Parameters<typeof scripted>[0]) {
  const model = scripted(replies)
  const request = { model: 'm', messages: [{ role: 'user', content: 'hello' }], temperature: 0 } as const
  const { graph, seen } = trying((ctx) => ctx.callModel(model, request))
  return { graph, noted: () => ({ requests: model.requests, ...seen }) }
}

// What is seen of a run.

const message = ({ error }: Played) => (error as Error | undefined)?.message
const made = ({ state }: Played) => state?.made
const ended = (played: Played) => [played.status, made(played) ?? message(played)]
const answers = ({ state }: Played) =>
  ((state?.messages ?? []) as unknown as readonly { role: string; content: string }[])
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => content)
/** What `Watch` told of each consultation. */
interface Asked {
  readonly subject: object
  /** A value of its own. */
  readonly deep: unknown
  readonly ctx: {
    readonly seam: string
    readonly half: string
    readonly attempt: number
    readonly admits: readonly string[]
  }
}
const asked = ({ events }: Played, seam: string) =>
  events
    .flatMap((event) =>
      event.type === 'plugin:Watch:asked' && 'data' in event ? (event.data as unknown as Asked) : [],
    )
    .filter(({ ctx }) => ctx.seam === seam)
const withoutCtx = ({ ctx: _, deep: __, ...shown }: Asked) => shown
const failure = (played: Played) => [played.error instanceof MiddlewareError, message(played)]
const attemptsOf = (type: RunEvent['type'], { events }: Played) =>
  events.flatMap((event) => (event.type === type && 'attempt' in event ? event.attempt : []))

const broken = (policy: string, at: string, why: string) => [
  true,
  expect.stringMatching(new RegExp(`^policy "${policy}" \\(plugin tested\\) failed at ${at}.*${why}`)),
]

const CASES: readonly Case[] = [
  // run
  {
    name: 'run.before refuses a run',
    policies: ['RefuseRun'],
    on: echo,
    sees: ended,
    is: ['failed', 'policy "RefuseRun" refused the run of "one": closed'],
  },
  {
    name: 'run.before changes its input, run.after its result',
    policies: ['ChangeRun'],
    on: echo,
    sees: ({ state }) => state,
    is: { text: 'changed', made: 'replaced' },
  },
  {
    name: 'run.after fails it',
    policies: ['FailRun'],
    on: echo,
    sees: ended,
    is: ['failed', expect.stringContaining('policy "FailRun" failed the run of "one": unfit')],
  },
  // nodeError
  {
    name: 'A2: a failed node that is passed fails the run with its own error',
    policies: ['Still'],
    on: failing,
    sees: (played, noted) => [...ended(played), noted],
    is: ['failed', 'failure 1', 1],
  },
  {
    name: 'A3: it is retried until it succeeds',
    policies: ['Retry'],
    on: () => failing(2),
    sees: (played, noted) => [made(played), noted],
    is: ['attempt 3', 3],
  },
  {
    name: 'A4: it is replaced, and the run goes on',
    policies: ['Fallback'],
    on: failing,
    sees: (played, noted) => [...ended(played), noted],
    is: ['completed', 'the fallback', 1],
  },
  {
    name: 'A5: it is failed, with its own error as the cause',
    policies: ['Strict'],
    on: failing,
    sees: (played) => [message(played), ((played.error as Error).cause as Error).message],
    is: ['policy "Strict" failed node "step": too late', 'failure 1'],
  },
  {
    name: 'A6: it is shown by name and type, its error by name and message',
    policies: ['Watch'],
    on: failing,
    sees: (played) => ({ ...asked(played, 'nodeError')[0], deep: undefined }),
    is: {
      subject: { nodeName: 'step', nodeType: 'Node' },
      outcome: { ok: false, error: { name: 'Error', message: 'failure 1' } },
      ctx: {
        seam: 'nodeError',
        half: 'after',
        attempt: 1,
        maxAttempts: 3,
        admits: ['pass', 'replace', 'retry', 'fail'],
        revisit: false,
        substituted: null,
        component: {},
      },
    },
  },
  {
    name: 'A7: three attempts are the end, and a warning says so',
    policies: ['Retry'],
    on: failing,
    sees: (played, noted) => [message(played), noted, played.warnings.at(-1)],
    is: ['failure 3', 3, expect.stringContaining('is refused: attempt 3 of 3 was the last')],
  },
  {
    name: 'A8: the last attempt may be replaced',
    policies: ['Careful'],
    on: failing,
    limits: { maxNodeAttempts: 2 },
    sees: (played, noted) => [made(played), noted],
    is: ['last', 2],
  },
  {
    name: 'A9: a refused retry hands the say to the next policy',
    policies: ['Retry', 'Fallback'],
    on: failing,
    limits: { maxNodeAttempts: 2 },
    sees: (played, noted) => [made(played), noted, played.warnings.length],
    is: ['the fallback', 2, 3],
  },
  {
    name: 'A10: retries spend iterations of the run',
    policies: ['Retry'],
    on: failing,
    limits: { maxNodeAttempts: 100, maxIterations: 4 },
    sees: (played, noted) => [message(played), noted],
    is: [expect.stringContaining('exceeded max iterations: 4, 3 of them retries'), 4],
  },
  {
    name: 'A11: each arrival at a node has attempts of its own',
    policies: ['Watch', 'Retry'],
    on: loop,
    limits: { maxNodeAttempts: 2 },
    sees: (played) => [played.status, asked(played, 'nodeError').map(({ ctx }) => ctx.attempt)],
    is: ['completed', [1, 1]],
  },
  {
    name: 'B1: a replaced node leaves by its unlabelled edge',
    policies: ['AnswerStep'],
    on: forking,
    sees: made,
    is: 'cold',
  },
  {
    name: 'B2: the result that is supplied for a node that failed is not a route',
    policies: ['Fallback'],
    on: lost,
    sees: message,
    is: expect.stringContaining('policy "Fallback" supplied its result, and a result is not a route'),
  },
  {
    name: 'B3: nor is one for a healthy node, and no failure is spoken of',
    policies: ['Answer'],
    on: routing,
    sees: message,
    is: expect.stringMatching(
      /^node "step": policy "Answer" supplied its result, and a result is not a route: (?!.*fail)/,
    ),
  },
  {
    name: 'B4: a warning says who supplied a result',
    policies: ['Fallback'],
    on: failing,
    sees: ({ warnings }) => warnings,
    is: ['policy "Fallback" supplied a result for node "step"; it had failed: failure 1'],
  },
  {
    name: 'C1, C2: the first verdict but pass decides, in load order',
    policies: ['Still', 'Fallback', 'Strict'],
    on: failing,
    sees: ended,
    is: ['completed', 'the fallback'],
  },
  {
    name: 'C3: a handler that throws ends the run, and the node’s error is the cause',
    policies: ['Broken'],
    on: failing,
    sees: (played) => [...failure(played), ((played.error as Error).cause as Error).message],
    is: [...broken('Broken', 'nodeError.after', 'no such key. The step itself had failed: failure 1'), 'failure 1'],
  },
  {
    name: 'C4: an unknown action is told those that are admitted',
    policies: ['Unknown'],
    on: failing,
    sees: failure,
    is: broken('Unknown', 'nodeError.after', 'answered "ignore", .* admits: pass, replace, retry, fail'),
  },
  {
    name: 'C5: a fail without a reason is none',
    policies: ['Mute'],
    on: failing,
    sees: failure,
    is: broken('Mute', 'nodeError.after', 'without a "reason"'),
  },
  {
    name: 'C8: a half that is declared and not served says which handler to write',
    policies: ['Absent'],
    on: failing,
    sees: failure,
    is: broken('Absent', 'nodeError.after', 'there is no handler for nodeError.after of Absent; write: serve'),
  },
  {
    name: 'C9: policies that never act change nothing',
    policies: ['Still'],
    on: () => agent(2),
    sees: (played, noted) => [played.status, played.warnings, answers(played), noted],
    is: ['completed', [], ['done', 'done'], { ran: [{ text: 'x' }, { text: 'x' }], requests: 3 }],
  },
  {
    name: 'D1: events number the attempts',
    policies: ['Retry'],
    on: () => failing(2),
    sees: (played) => (['node_start', 'node_error', 'node_complete'] as const).map((type) => attemptsOf(type, played)),
    is: [[1, 2, 3], [1, 2], [3]],
  },
  {
    name: 'D2: a granted retry is a warning with attempt and cause',
    policies: ['Retry'],
    on: () => failing(1),
    sees: ({ warnings }) => warnings,
    is: [expect.stringMatching(/^policy "Retry" retries node "step" .*attempt 1 of 3: failure 1$/)],
  },
  {
    name: 'D3: what a policy emits and logs stands under the node, with its own type',
    policies: ['Watch'],
    on: failing,
    sees: ({ events }) =>
      events
        .filter(({ type }) => type.startsWith('plugin'))
        .filter((event) => JSON.stringify(event).includes('nodeError'))
        .map(({ path: _, ...event }) => event),
    is: [
      {
        type: 'plugin:Watch:asked',
        nodeName: 'step',
        nodeType: 'Watch',
        data: expect.objectContaining({
          outcome: { ok: false, error: { name: 'Error', message: 'failure 1' } },
          deep: [1, { nothing: null, text: 'ü\n' }],
        }),
      },
      { type: 'plugin_log', nodeName: 'step', nodeType: 'Watch', level: 'info', message: 'asked at nodeError.after' },
    ],
  },
  // node
  {
    name: 'F1, F5: both halves of node are shown the step, its input and its output',
    policies: ['Watch'],
    on: echo,
    sees: (played) => asked(played, 'node').map(withoutCtx),
    is: [
      { subject: { nodeName: 'step', nodeType: 'Node' }, input: { text: 'given', made: 'nothing' } },
      { subject: { nodeName: 'step', nodeType: 'Node' }, outcome: { ok: true, value: { made: 'given' } } },
    ],
  },
  { name: 'F2: modify changes what a node is given', policies: ['Change'], on: echo, sees: made, is: 'changed' },
  {
    name: 'F3: replace answers for a node, with a warning',
    policies: ['Answer'],
    on: failing,
    sees: (played, noted) => [made(played), noted, played.warnings.length],
    is: ['the answer', 0, 1],
  },
  {
    name: 'F4: reject ends the run, naming policy and reason',
    policies: ['Refuse'],
    on: echo,
    sees: ended,
    is: ['failed', 'policy "Refuse" refused node "step": not here'],
  },
  { name: 'F5: after may swap the output', policies: ['Swap'], on: echo, sees: made, is: 'swapped' },
  {
    name: 'F5: or fail the run',
    policies: ['Fail'],
    on: echo,
    sees: ended,
    is: ['failed', 'policy "Fail" failed node "step": unfit'],
  },
  {
    name: 'F6: node.after admits no retry',
    policies: ['RetryAfter'],
    on: echo,
    sees: failure,
    is: broken('RetryAfter', 'node.after', 'answered "retry", .* it admits: pass, replace, fail'),
  },
  {
    name: 'F7: it may rescue a failed node',
    policies: ['Swap'],
    on: failing,
    sees: (played, noted) => [...ended(played), noted],
    is: ['completed', 'swapped', 1],
  },
  {
    name: 'F8, Z6: with one retry before is asked twice, with attempts 1 and 2, and after once',
    policies: ['Watch', 'Retry'],
    on: () => failing(1),
    sees: (played) => asked(played, 'node').map(({ ctx: { half, attempt } }) => [half, attempt]),
    is: [
      ['before', 1],
      ['before', 2],
      ['after', 2],
    ],
  },
  {
    name: 'F9: both failures are told when after throws on a failed node',
    policies: ['BrokenAfter'],
    on: failing,
    sees: failure,
    is: broken('BrokenAfter', 'node.after', 'no such key. The step itself had failed: failure 1'),
  },
  // toolCall
  {
    name: 'G1, G2, G6: a refused call is answered, does not run, is a warning, and nobody else is asked',
    policies: ['RefuseTool', 'BrokenTool'],
    on: agent,
    sees: (played, noted) => [answers(played), noted, played.warnings],
    is: [['Refused: no x'], { ran: [], requests: 2 }, ['policy "RefuseTool" refused the call of tool "act": no x']],
  },
  {
    name: 'G2: it has a result that says so and is no error, and was never called',
    policies: ['RefuseTool'],
    on: agent,
    sees: ({ events }) =>
      events.flatMap((event) => (event.type.startsWith('tool_') ? [{ ...event, path: undefined }] : [])),
    is: [
      {
        type: 'tool_result',
        nodeName: 'agent',
        nodeType: 'AgentNode',
        toolName: 'act',
        toolCallId: 'call-1-1',
        refused: 'no x',
      },
    ],
  },
  {
    name: 'G3: modify runs the tool with other arguments, and the event shows them',
    policies: ['ChangeTool'],
    on: agent,
    sees: ({ events }, noted) => [noted, events.flatMap((event) => (event.type === 'tool_call' ? event.toolArgs : []))],
    is: [{ ran: [{ text: 'changed' }], requests: 2 }, [{ text: 'changed' }]],
  },
  {
    name: 'G4: replace answers and runs nothing',
    policies: ['AnswerTool'],
    on: agent,
    sees: (played, noted) => [answers(played), noted],
    is: [['the answer'], { ran: [], requests: 2 }],
  },
  {
    name: 'G5: a gate behind a policy that rewrites sees what would run',
    policies: ['ChangeTool', 'RefuseTool'],
    on: agent,
    sees: answers,
    is: ['Refused: no changed'],
  },
  {
    name: 'G7: an action that is not admitted stops the run, with those that are',
    policies: ['RetryTool'],
    on: agent,
    sees: failure,
    is: broken('RetryTool', 'toolCall.after', 'answered "retry", .* admits: pass, replace, reject, fail'),
  },
  {
    name: 'G8: a half that is not served fails at its first use',
    policies: ['AbsentTool'],
    on: agent,
    sees: failure,
    is: broken('AbsentTool', 'toolCall.before', 'there is no handler for toolCall.before of AbsentTool'),
  },
  {
    name: 'G9: after is asked when the tool threw, too, and replace is what the model sees',
    policies: ['SwapTool'],
    on: () =>
      agent(1, () => {
        throw new Error('the disk is full')
      }),
    sees: answers,
    is: ['swapped'],
  },
  {
    name: 'G9: it may withhold a result',
    policies: ['WithholdTool'],
    on: agent,
    sees: answers,
    is: ['Refused: secret'],
  },
  {
    name: 'G9: or end the run',
    policies: ['FailTool'],
    on: agent,
    sees: ended,
    is: ['failed', expect.stringContaining('policy "FailTool" failed the call of tool "act": unfit')],
  },
  {
    name: 'a tool call is shown with its tool, its call, its caller and its arguments, in both halves',
    policies: ['Watch'],
    on: agent,
    sees: (played) =>
      asked(played, 'toolCall')
        .map(withoutCtx)
        .map(({ subject, ...shown }) => [subject, shown]),
    is: [{ input: { text: 'x' } }, { input: { text: 'x' }, outcome: { ok: true, value: 'done' } }].map((shown) => [
      {
        nodeName: 'agent',
        nodeType: 'AgentNode',
        toolName: 'act',
        toolCallId: 'call-1-1',
        caller: 'model',
        source: 'code',
      },
      shown,
    ]),
  },
  {
    name: 'Z7: each half is told the verdicts that it admits',
    policies: ['Watch'],
    on: agent,
    sees: (played) => asked(played, 'toolCall').map(({ ctx: { half, admits } }) => [half, admits]),
    is: [
      ['before', ['proceed', 'modify', 'replace', 'reject', 'suspend']],
      ['after', ['pass', 'replace', 'reject', 'fail']],
    ],
  },
  // modelCall
  {
    name: 'H1: a proceed sends the request as it is',
    policies: ['Still'],
    on: () => asking('hi'),
    sees: (_, noted) => (noted as { requests: unknown }).requests,
    is: [{ model: 'm', messages: [{ role: 'user', content: 'hello' }], temperature: 0 }],
  },
  {
    name: 'H1: an edit is sent, and what it leaves out stays',
    policies: ['ChangeModel'],
    on: () => asking('hi'),
    sees: (_, noted) => (noted as { requests: unknown }).requests,
    is: [{ model: 'm', messages: [{ role: 'user', content: 'hello' }], temperature: 0.5 }],
  },
  {
    name: 'H2: replace answers without asking, with a warning',
    policies: ['AnswerModel'],
    on: () => asking('hi'),
    sees: ({ warnings }, noted) => [noted, warnings.length],
    is: [{ requests: [], value: { content: 'cached', finish_reason: '' }, left: true }, 1],
  },
  {
    name: 'H3: reject fails the call, naming policy and reason',
    policies: ['RefuseModel'],
    on: () => asking('hi'),
    sees: (_, noted) => (noted as { error: Error }).error.message,
    is: 'policy "RefuseModel" refused the model call of node "step": spent',
  },
  ...[
    { policy: 'BadMessages', why: '"messages" that are no list' },
    { policy: 'BadMessage', why: 'needs a string "content"' },
    { policy: 'BadRole', why: 'a "role" of system, user' },
    { policy: 'BadTemperature', why: '"temperature" that is no finite' },
    { policy: 'BadModel', why: '"model" that is no name' },
  ].map(({ policy, why }) => ({
    name: `H4: an edit that is none stops the run: ${policy}`,
    policies: [policy],
    on: () => asking('hi'),
    sees: failure,
    is: broken(policy, 'modelCall.before', why),
  })),
  {
    name: 'H5: a retry after a failure asks again, and the second answer counts',
    policies: ['RetryModel'],
    on: () => asking(new Error('429 Too Many Requests'), 'hi'),
    sees: (_, noted) => (noted as { value: { content: string } }).value.content,
    is: 'hi',
  },
  {
    name: 'H6: three sends are the most, and the last failure stands',
    policies: ['RetryModel'],
    on: () => asking(...[1, 2, 3, 4].map((n) => new Error(`failure ${n}`))),
    sees: (_, noted) => {
      const { requests, error } = noted as { requests: readonly unknown[]; error: Error }
      return [requests.length, error.message]
    },
    is: [3, 'failure 3'],
  },
  {
    name: 'H7: after a failure replace supplies the answer',
    policies: ['SwapModel'],
    on: () => asking(new Error('no route')),
    sees: (_, noted) => (noted as { value: { content: string } }).value.content,
    is: 'sorry',
  },
  {
    name: 'H7: pass leaves it as it is',
    policies: ['Still'],
    on: () => asking(new Error('no route')),
    sees: (_, noted) => (noted as { error: Error }).error.message,
    is: 'no route',
  },
  {
    name: 'H7: and fail ends the call with its reason',
    policies: ['FailModel'],
    on: () => asking(new Error('no route')),
    sees: (_, noted) => (noted as { error: Error }).error.message,
    is: 'policy "FailModel" failed the model call of node "step": never mind',
  },
  // agentRound
  {
    name: 'I1, I4: before is shown every round, after those that ran tools',
    policies: ['Watch'],
    on: agent,
    limits: { maxToolRounds: 7 },
    sees: (played) =>
      asked(played, 'agentRound')
        .map(withoutCtx)
        .map(({ subject: _, ...shown }) => shown),
    is: [
      { input: { round: 1, maxRounds: 7 } },
      { outcome: { ok: true, value: { round: 1, toolCalls: ['act'] } } },
      { input: { round: 2, maxRounds: 7 } },
    ],
  },
  {
    name: 'I2: rejecting the first round asks no model',
    policies: ['RefuseFirst'],
    on: agent,
    sees: (played, noted) => [message(played), noted],
    is: ['policy "RefuseFirst" refused round 1 of node "agent": not today', { ran: [], requests: 0 }],
  },
  {
    name: 'I3: rejecting those above 2 ends a looping agent before its third',
    policies: ['TwoRounds'],
    on: () => agent(9),
    sees: (played, noted) => [message(played), (noted as { requests: number }).requests],
    is: ['policy "TwoRounds" refused round 3 of node "agent": enough', 2],
  },
  {
    name: 'I5: a fail ends the agent and names the round',
    policies: ['FailRound'],
    on: agent,
    sees: message,
    is: 'policy "FailRound" failed round 1 of node "agent": off topic',
  },
  {
    name: 'I6: a round is not rewritten',
    policies: ['ChangeRound'],
    on: agent,
    sees: failure,
    is: broken('ChangeRound', 'agentRound.before', 'answered "modify", .* it admits: proceed, reject'),
  },
  {
    name: 'I6: and not retried',
    policies: ['RetryRound'],
    on: agent,
    sees: failure,
    is: broken('RetryRound', 'agentRound.after', 'answered "retry", .* it admits: pass, fail'),
  },
  // ask
  {
    name: 'ask.before answers a question of a node',
    policies: ['AnswerAsk'],
    on: () => ({ graph: oneNode(async (_state, ctx) => ({ made: String(await ctx.ask('sure', 'Are you?')) })) }),
    sees: ended,
    is: ['completed', 'yes'],
  },
]

/** A process may take its time to start. */
const WAIT = { timeout: 10_000 }

describe.each(ROUTES)('policies %s', (route) => {
  const before = `import { handlers } from ${JSON.stringify(handlers)}`
  const manifest = { capabilities: ['emitEvent', 'log', 'runTool', 'callModel'], components }
  const file = pluginFile(route, { before, handlers: 'handlers', manifest }, suiteFolderOf)
  let plugins: Plugins
  beforeAll(async () => {
    const config = { Asks: { llm_config: { model_id: 'its own' } } }
    const answers = ({ messages: [asked] }: { messages: readonly { content: string }[] }) => `said of ${asked?.content}`
    const model = ({ model_id }: JsonObject) => scripted([answers, answers], { model: model_id as string })
    plugins = await loadPlugins([file], { runtime, config, model })
  })
  afterAll(() => plugins.close())

  const chainOf = (names: readonly string[]) =>
    names.map((name) => plugins.policies.find((policy) => policy.name === name) as Policy)

  it('L10: a tool that a policy runs is one of the run that it is consulted in', async () => {
    const policies = chainOf(['Runs'])
    const run = async (name: string) => {
      const act = noting(({ text }) => `${name} ran with ${text}`)
      return (await settle({ ...echo(), policies, tools: [act] })).state.made
    }
    const runs = await Promise.all(['one', 'two'].map(run))
    expect(runs).toEqual(['one ran with given', 'two ran with given'])
  })

  it('L14: a policy asks the model of its own settings, whatever models the run has', async () => {
    const events = await eventsOf({ ...echo(), policies: chainOf(['Asks']), models: () => scripted(['another']) })
    expect(events.at(-1)).toMatchObject({ status: 'completed', result: { made: 'said of given' } })
  })

  it('L14: one whose settings name none is refused', async () => {
    const { status, error } = await settle({ ...echo(), policies: chainOf(['AsksNobody']) })
    expect([status, error instanceof MiddlewareError]).toEqual(['failed', true])
    expect((error as Error).message).toContain('"AsksNobody" has no model to call: its settings name no llm_config')
  })

  it('A12: a retry waits for 30 s at most, and a warning names both numbers', async () => {
    const platform = new Clock()
    const { graph, noted } = failing(1)
    const run = settle({ graph, policies: chainOf(['Patient']), platform })
    await vi.waitFor(() => expect(platform.waits).toContain(30_000), WAIT)
    await platform.pass(29_999)
    expect(noted()).toBe(1)
    await platform.pass(1)
    const { state, warnings } = await run
    expect([state.made, noted()]).toEqual(['attempt 2', 2])
    expect(warnings[0]?.message).toContain('in 30000 ms (3600000 ms asked, 30000 ms is the most)')
  })

  it('A13: a cancel cuts that wait short', async () => {
    const platform = new Clock()
    const { graph, noted } = failing(1)
    const cancel = new AbortController()
    const run = settle({ graph, policies: chainOf(['Patient']), platform, signal: cancel.signal })
    await vi.waitFor(() => expect(platform.waits).toContain(30_000), WAIT)
    cancel.abort()
    expect(await run).toMatchObject({ status: 'cancelled', error: { code: 'RUN_CANCELLED' } })
    expect([platform.pending, noted()]).toEqual([0, 1])
  })

  it('A14: of a node that fails since its run was cancelled nobody is asked', async () => {
    const cancel = new AbortController()
    const graph = oneNode(() => {
      cancel.abort()
      throw new Error('aborted')
    })
    const policies = chainOf(['Watch', 'Retry'])
    const events = await eventsOf({ graph, policies, signal: cancel.signal })
    expect(events.at(-1)).toMatchObject({ type: 'run_end', status: 'cancelled' })
    const told = events.flatMap((event) => (event.type === 'plugin_log' ? event.message : []))
    expect(told).toContain('asked at node.before')
    expect(told).not.toContain('asked at nodeError.after')
    expect(told).not.toContain('asked at node.after')
  })

  it.each(CASES)('$name', async ({ policies, on, limits, sees, is }) => {
    const chain = chainOf(policies)
    const { graph, noted } = on()
    const { status, error, warnings, state } = (await settle({
      graph: graph as TextGraph,
      policies: chain,
      limits,
    })) as unknown as RunOutcome<JsonObject>
    const seen = noted?.()
    const events = await eventsOf({ graph: on().graph as TextGraph, policies: chain, limits })
    const played = { status, error, state, warnings: warnings.map((warning) => warning.message), events }
    expect(sees(played, seen)).toEqual(is)
  })
})
