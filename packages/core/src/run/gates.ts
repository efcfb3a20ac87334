import type { ChatResponse } from '../chat/chat.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { compileGate, type Gate } from '../seams/gate.ts'
import type { Policy } from '../seams/policy.ts'
import { modelCallSpec } from './model-call.ts'
import { type NodeResult, nodeSpec } from './node-call.ts'
import { agentRoundSpec } from './round.ts'
import { runSpec } from './run-call.ts'
import type { RunEnd } from './scope.ts'
import { toolCallSpec } from './tool-call.ts'

/** The ways through all seams, compiled once for a list of policies. */
export class Gates {
  readonly policies: readonly Policy[]
  readonly run: Gate<JsonObject, RunEnd> | undefined
  readonly node: Gate<JsonObject, NodeResult> | undefined
  readonly agentRound: Gate<Json, { readonly round: number; readonly end: { readonly toolNames: readonly string[] } }>
  readonly modelCall: Gate<Json, ChatResponse>
  readonly toolCall: Gate<JsonObject, Json>
  /** Whether parts of a streamed response wait for the verdicts on the whole. */
  readonly holdsStreams: boolean

  constructor(policies: readonly Policy[]) {
    const watched = (...seams: ('run' | 'node' | 'nodeError')[]) =>
      policies.some((policy) =>
        seams.some((seam) => policy.subscribes(seam, 'before') || policy.subscribes(seam, 'after')),
      )
    this.policies = policies
    this.run = watched('run') ? compileGate(runSpec, policies) : undefined
    this.node = watched('node', 'nodeError') ? compileGate(nodeSpec, policies) : undefined
    this.agentRound = compileGate(agentRoundSpec, policies)
    this.modelCall = compileGate(modelCallSpec, policies)
    this.toolCall = compileGate(toolCallSpec, policies)
    this.holdsStreams = policies.some((policy) => policy.stream !== 'pass' && policy.subscribes('modelCall', 'after'))
  }
}
