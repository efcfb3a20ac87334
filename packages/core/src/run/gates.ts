import type { ChatResponse } from '../chat/chat.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { compileGate, type Gate } from '../seams/gate.ts'
import type { Policy } from '../seams/policy.ts'
import type { Half, Seam } from '../seams/table.ts'
import { askSpec } from './ask-call.ts'
import { modelCallSpec } from './model-call.ts'
import { type NodeResult, nodeSpec } from './node-call.ts'
import { agentRoundSpec } from './round.ts'
import { runEndSpec, runStartSpec } from './run-call.ts'
import type { RunEnd } from './scope.ts'
import { toolCallSpec } from './tool-call.ts'

/** The ways through all seams, compiled once for a list of policies. */
export class Gates {
  /** Into a run; `undefined`, here and below, where nobody is subscribed. */
  readonly runStart: Gate<JsonObject, JsonObject | undefined> | undefined
  /** Out of a run. */
  readonly runEnd: Gate<JsonObject, RunEnd> | undefined
  readonly node: Gate<JsonObject, NodeResult> | undefined
  readonly agentRound: Gate<Json, { readonly round: number; readonly end: { readonly toolNames: readonly string[] } }>
  /** Whether anybody is subscribed to `agentRound`. */
  readonly judgesRounds: boolean
  readonly modelCall: Gate<Json, ChatResponse>
  readonly toolCall: Gate<JsonObject, Json>
  readonly ask: Gate<Json, Json>
  readonly policies: readonly Policy[]
  /** Whether parts of a streamed response wait for the verdicts on the whole. */
  readonly holdsStreams: boolean

  constructor(policies: readonly Policy[]) {
    const watched = (seam: Seam, half: Half) => policies.some((policy) => policy.subscribes(seam, half))
    const nodes = watched('node', 'before') || watched('node', 'after') || watched('nodeError', 'after')
    this.runStart = watched('run', 'before') ? compileGate(runStartSpec, policies) : undefined
    this.runEnd = watched('run', 'after') ? compileGate(runEndSpec, policies) : undefined
    this.node = nodes ? compileGate(nodeSpec, policies) : undefined
    this.agentRound = compileGate(agentRoundSpec, policies)
    this.judgesRounds = watched('agentRound', 'before') || watched('agentRound', 'after')
    this.modelCall = compileGate(modelCallSpec, policies)
    this.toolCall = compileGate(toolCallSpec, policies)
    this.ask = compileGate(askSpec, policies)
    this.policies = policies
    this.holdsStreams = policies.some((policy) => policy.stream !== 'pass' && policy.subscribes('modelCall', 'after'))
    Object.freeze(this)
  }
}
