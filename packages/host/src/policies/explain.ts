import {
  admits,
  type Half,
  type KeptScope,
  type Policy,
  SEAM_NAMES,
  type Seam,
  type Selector,
  type Subject,
} from '@sluice/core'
import type { CheckedNode, Flow, FlowTool } from '@sluice/flow'
import { RemotePolicy } from '../plugin/policy.ts'
import { observes } from './hooks.ts'
import type { FileSelector } from './selector.ts'

/** Whether a policy is consulted about the calls of a place: always, never, or as each call comes. */
export type Reach = 'always' | 'may' | 'never'

/** A policy at a half, in the order in which it is consulted there. */
export interface ExplainedPolicy {
  readonly seam: Seam
  readonly half: Half
  /** From 1; counted half by half. */
  readonly place: number
  readonly name: string
  readonly mode: 'enforce' | 'shadow' | 'off'
  readonly onFailure: 'fail' | 'pass'
  readonly kind: 'rule' | 'process' | 'module' | 'hooks'
  /** Where it was installed: `sluice.yaml:8`. */
  readonly origin: string
  /** As written. */
  readonly match?: string
  /** How far what it keeps holds. */
  readonly keeps?: KeptScope
  /** It is only told here, and decides nothing. */
  readonly observes?: true
}

/** A place in a flow from which calls are made. */
export interface ExplainedPlace {
  readonly seam: Seam
  /** `tool "search" (tools-dir)`, `model "gpt-5-mini"`, `node "agent"`. */
  readonly what: string
  /** The node, with the flow nodes around it: `outer/agent`. */
  readonly node: string
  readonly reachedBy: readonly { readonly half: Half; readonly name: string; readonly reach: Exclude<Reach, 'never'> }[]
  /** Whether a policy that enforces is consulted about it, or may be. */
  readonly guarded: boolean
}

export interface Explanation {
  readonly policies: readonly ExplainedPolicy[]
  /** Policies for whose verdict parts of a streamed response wait. */
  readonly streamsHeldBy: readonly string[]
  /** Policies whose verdicts come after parts of a response have left. */
  readonly afterStreams: readonly string[]
  /** Absent without a flow. */
  readonly places?: readonly ExplainedPlace[]
}

export interface Explained {
  readonly policies: readonly Policy[]
  /** The policy file, as named. */
  readonly file?: string
  readonly flow?: Flow
  /** Where a tool of this name is from; `undefined` where there is none. */
  sourceOf(tool: string): string | undefined
  /** Every tool there is. A plugin's node may call any of them. */
  readonly tools: readonly string[]
}

const HALVES = ['before', 'after'] as const

/** Who is consulted where and in which order; in a flow, about what, and what nobody guards. */
export function explainPolicies(explained: Explained): Explanation {
  const { policies, flow } = explained
  const at = (seam: Seam, half: Half) =>
    admits(seam, half).length === 0 ? [] : policies.filter((policy) => policy.subscribes(seam, half))
  const enforcing = (seam: Seam) => at(seam, 'after').filter((policy) => judges(policy, seam, 'after'))
  return {
    policies: SEAM_NAMES.flatMap((seam) =>
      HALVES.flatMap((half) =>
        at(seam, half).map((policy, i) => ({
          seam,
          half,
          place: i + 1,
          ...told(policy, explained),
          ...(observes(policy, seam, half) && { observes: true as const }),
        })),
      ),
    ),
    streamsHeldBy: enforcing('modelCall')
      .filter(({ stream }) => stream !== 'pass')
      .map(({ name }) => name),
    afterStreams: [...new Set((['agentRound', 'node', 'run'] as const).flatMap(enforcing).map(({ name }) => name))],
    ...(flow && { places: placesIn(flow, explained).map((place) => reached(place, policies)) }),
  }
}

const enforces = ({ mode = 'enforce' }: Policy): boolean => mode === 'enforce'

const judges = (policy: Policy, seam: Seam, half: Half): boolean => enforces(policy) && !observes(policy, seam, half)

function told(policy: Policy, { file }: Explained): Omit<ExplainedPolicy, 'seam' | 'half' | 'place'> {
  const { name, mode = 'enforce', onFailure = 'fail', plugin, origin = plugin, match, kept } = policy
  const inProcess = 'adapter' in policy ? 'hooks' : plugin === file ? 'rule' : 'module'
  const kind = policy instanceof RemotePolicy ? 'process' : inProcess
  const text = (match as FileSelector | undefined)?.text
  const keeps = kept && { keeps: kept.scope }
  return { name, mode, onFailure, kind, origin, ...(text !== undefined && { match: text }), ...keeps }
}

interface Place extends Pick<ExplainedPlace, 'seam' | 'what' | 'node'> {
  readonly subject: Subject
}

function placesIn(flow: Flow, explained: Explained, around = '', nested = false): readonly Place[] {
  const run = { graphName: flow.name, resuming: false, nested }
  return [
    { seam: 'run', what: `run of "${flow.name}"`, node: around, subject: run },
    ...flow.nodes.flatMap((node) => placesOf(node, explained, around)),
  ]
}

function placesOf(node: CheckedNode, explained: Explained, around: string): readonly Place[] {
  const { name, type } = node
  const path = around === '' ? name : `${around}/${name}`
  const subject = { nodeName: name, nodeType: type }
  const place = (seam: Seam, what: string, more: Subject = {}): Place => {
    return { seam, what, node: path, subject: { ...subject, ...more } }
  }
  const tool = (toolName: string, caller: 'model' | 'node' | 'plugin') => {
    const source = explained.sourceOf(toolName)
    return place('toolCall', `tool "${toolName}" (${source ?? 'not there'})`, { toolName, caller, source })
  }
  const self = [place('node', `node "${name}"`), place('nodeError', `a failure of node "${name}"`)]
  if ('component' in node) return [...self, ...explained.tools.map((each) => tool(each, 'plugin'))]
  switch (node.type) {
    case 'LlmNode':
      return [...self, place('modelCall', `model "${node.llm.modelId}"`)]
    case 'ToolNode':
      return [...self, tool(node.tool.name, 'node')]
    case 'FlowNode':
      return [...self, ...placesIn(node.flow, explained, path, true)]
    case 'AgentNode':
      return [
        ...self,
        place('agentRound', `rounds of agent "${node.agent.name}"`),
        place('modelCall', `model "${node.agent.llm.modelId}"`),
        ...node.agent.tools.map(({ name: each }: FlowTool) => tool(each, 'model')),
      ]
    default:
      return self
  }
}

function reached({ seam, what, node, subject }: Place, policies: readonly Policy[]): ExplainedPlace {
  const reachedBy: { half: Half; name: string; reach: Exclude<Reach, 'never'> }[] = []
  let guarded = false
  for (const half of HALVES) {
    for (const policy of policies) {
      if (policy.mode === 'off' || admits(seam, half).length === 0 || !policy.subscribes(seam, half)) continue
      const reach = reachOf(policy.match, subject)
      if (reach === 'never') continue
      reachedBy.push({ half, name: policy.name, reach })
      if (judges(policy, seam, half)) guarded = true
    }
  }
  return { seam, what, node, reachedBy, guarded }
}

function reachOf(match: Selector | undefined, subject: Subject): Reach {
  if (match === undefined) return 'always'
  const said = 'atSite' in match ? (match as FileSelector).atSite(subject) : undefined
  if (said !== undefined) return said ? 'always' : 'never'
  if (match.reads === 'call') return 'may'
  try {
    return match.matches({ subject, labels: [] }) ? 'always' : 'never'
  } catch {
    return 'may'
  }
}
