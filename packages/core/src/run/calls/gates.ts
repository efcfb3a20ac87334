import type { ChatResponse } from '../../chat/chat.ts'
import { SluiceError } from '../../errors/error.ts'
import type { GraphPlan } from '../../graph/graph.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import type { StreamBlocks } from '../../seams/blocks.ts'
import { CallSites } from '../../seams/call-sites.ts'
import { compileGate, type Gate } from '../../seams/gate.ts'
import { inOrder } from '../../seams/order.ts'
import { LAYER, type Layer, layersAt, type OwnMiddleware } from '../../seams/own.ts'
import type { Policy } from '../../seams/policy.ts'
import { selectsSite } from '../../seams/selector.ts'
import type { Subject } from '../../seams/subject.ts'
import { HALVES, type Half, type Seam } from '../../seams/table.ts'
import type { ChildOptions } from '../../tools/inside.ts'
import type { Runtime } from '../runtime.ts'
import type { RunEnd, RunScope } from '../scope.ts'
import type { Recording } from '../threads/recording.ts'
import { askSpec } from './ask-call.ts'
import { substituteJudges } from './judged-substitute.ts'
import { modelCallSpec } from './model-call.ts'
import { type NodeResult, nodeSpec } from './node-call.ts'
import { agentRoundSpec } from './round.ts'
import { runEndSpec, runStartSpec } from './run-call.ts'
import { toolCallSpec } from './tool-call.ts'

/** The ways through all seams, compiled once for a list of policies and the middleware of one graph. */
export class Gates {
  /** Into a run; `undefined`, as out of it, where nobody is subscribed. */
  readonly runStart: Gate<JsonObject, JsonObject | undefined> | undefined
  /** Out of a run. */
  readonly runEnd: Gate<JsonObject, RunEnd> | undefined
  /** The node itself where nobody is subscribed. */
  readonly node: Gate<JsonObject, NodeResult>
  readonly agentRound: Gate<Json, { readonly round: number; readonly end: { readonly toolNames: readonly string[] } }>
  readonly modelCall: Gate<Json, ChatResponse>
  readonly toolCall: Gate<JsonObject, Json>
  readonly ask: Gate<Json, Json>
  readonly policies: readonly Policy[]
  readonly own: readonly OwnMiddleware[]
  /** The graph's own, which answers what is asked in it before any that it inherits. */
  readonly askers: readonly OwnMiddleware[]
  /** Middleware of the runs around, which may answer what is asked in this one. */
  readonly around: readonly OwnMiddleware[]
  /** The hooks around the run itself. */
  readonly graphHooks: readonly Layer[]
  readonly #judgesRounds: CallSites<boolean>
  readonly #holdsStreams: CallSites<boolean>
  /** Who judges parts of a streamed response block by block. */
  readonly streamBlocks: readonly StreamBlocks[]

  /**
   * @param around middleware of the runs around, which may answer what is asked in this one, the nearest first.
   * @param recording what models and tools came to, in place of asking them.
   * @throws SluiceError `MIDDLEWARE_ORDER` for own middleware that is called like a policy: nobody could tell their questions
   *   apart.
   */
  constructor(
    policies: readonly Policy[],
    own: readonly OwnMiddleware[] = [],
    around: readonly OwnMiddleware[] = [],
    recording?: Recording,
  ) {
    requireOtherNames(policies, own)
    const watched = (seam: Seam, half: Half) =>
      policies.some((policy) => policy.mode !== 'off' && policy.subscribes(seam, half))
    this.runStart = watched('run', 'before') ? compileGate(runStartSpec, policies) : undefined
    this.runEnd = watched('run', 'after') ? compileGate(runEndSpec, policies) : undefined
    this.node = compileGate(nodeSpec, policies, own)
    this.agentRound = compileGate(agentRoundSpec, policies, own)
    const layered = layersAt(own, 'agentRound').length > 0
    const judging = policies.filter(
      (policy) => enforces(policy) && HALVES.some((half) => policy.subscribes('agentRound', half)),
    )
    this.#judgesRounds = new CallSites((site) => layered || judging.some((policy) => selectsSite(policy, site)))
    this.modelCall = compileGate(recording === undefined ? modelCallSpec : recordedModels(recording), policies, [
      ...substituteJudges(own),
      ...own,
    ])
    this.toolCall = compileGate(recording === undefined ? toolCallSpec : recordedTools(recording), policies, own)
    this.askers = own.filter((other) => !around.includes(other))
    this.ask = compileGate(askSpec, policies, [...this.askers, ...around])
    this.policies = policies
    this.own = own
    this.around = around
    this.graphHooks = layersAt(own, 'run')
    const gated = own.map(({ stream }) => stream)
    const holding = policies.filter(
      (policy) => enforces(policy) && policy.stream !== 'pass' && policy.subscribes('modelCall', 'after'),
    )
    this.#holdsStreams = new CallSites(
      (site) => gated.includes('hold') || holding.some((policy) => selectsSite(policy, site)),
    )
    this.streamBlocks = gated.filter((stream) => typeof stream === 'object')
    Object.freeze(this)
  }

  /** Whether anybody judges the rounds of this agent. */
  judgesRounds(subject: Subject): boolean {
    return this.#judgesRounds.at(subject)
  }

  /** Whether parts of a streamed response wait for the verdicts on the whole. */
  holdsStreams(subject: Subject): boolean {
    return this.#holdsStreams.at(subject)
  }
}

const recordedModels = (recording: Recording): typeof modelCallSpec => ({
  ...modelCallSpec,
  perform: ({ given }) => recording.outcomeOf('model', (given as { readonly model: string }).model, given),
})

const recordedTools = (recording: Recording): typeof toolCallSpec => ({
  ...toolCallSpec,
  perform: ({ subject, given }) => recording.outcomeOf('tool', subject.toolName ?? '', given),
})

const enforces = ({ mode = 'enforce' }: Policy): boolean => mode === 'enforce'

function requireOtherNames(policies: readonly Policy[], own: readonly OwnMiddleware[]): void {
  const both = own.find(({ name }) => policies.some((policy) => policy.name === name))
  if (both === undefined) return
  throw new SluiceError(
    'MIDDLEWARE_ORDER',
    `middleware "${both.name}" is called like an installed policy; give it a name of its own.`,
    { middleware: both.name },
  )
}

/** The ways through the seams for one run. Whose graph has no middleware, and nobody around who might answer, is the runtime's. */
export function gatesOf(
  runtime: Runtime,
  plan: GraphPlan,
  parent: RunScope | undefined,
  inherit: ChildOptions['middleware'],
): Gates {
  if (parent === undefined) return runtime.gatesOf(plan)
  const inherited = inherit === undefined ? [] : besides(parent.gates.own, plan.middleware)
  const around = [...new Set([...parent.gates.askers, ...parent.gates.around])].filter(
    (own) => !plan.middleware.includes(own) && own[LAYER]('ask') !== undefined,
  )
  if (inherited.length === 0 && around.length === 0) return runtime.gatesOf(plan)
  return new Gates(runtime.gates.policies, inOrder([...inherited, ...plan.middleware]), around, runtime.recording)
}

/** What a graph inherits: of two that are called alike its own stands, and the other one is left out. */
const besides = (outer: readonly OwnMiddleware[], own: readonly OwnMiddleware[]): readonly OwnMiddleware[] =>
  outer.filter(({ name }) => own.every((other) => other.name !== name))
