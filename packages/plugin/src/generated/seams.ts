// Written by scripts/generate-plugin.mjs from packages/core/src/seams; a change made here is lost.

/** The seams, and the verdicts that each half admits. */
export const SEAMS = {
  run: {
    before: ['proceed', 'modify', 'reject', 'suspend'],
    after: ['pass', 'replace', 'fail'],
  },
  node: {
    before: ['proceed', 'modify', 'replace', 'reject', 'suspend'],
    after: ['pass', 'replace', 'fail'],
  },
  nodeError: {
    before: [],
    after: ['pass', 'replace', 'retry', 'fail'],
  },
  agentRound: {
    before: ['proceed', 'reject'],
    after: ['pass', 'fail'],
  },
  modelCall: {
    before: ['proceed', 'modify', 'replace', 'reject', 'suspend'],
    after: ['pass', 'replace', 'retry', 'fail'],
  },
  toolCall: {
    before: ['proceed', 'modify', 'replace', 'reject', 'suspend'],
    after: ['pass', 'replace', 'reject', 'fail'],
  },
  ask: {
    before: ['proceed', 'replace'],
    after: ['pass'],
  },
} as const

export type Seam = keyof typeof SEAMS
export type Half = 'before' | 'after'

/** What kind of caller made a tool call. */
export type Caller = 'model' | 'node' | 'plugin' | 'middleware'

/**
 * What a policy is told about the step it is consulted on, and nothing wider: no run, no thread, no caller of the run.
 * `nodeName` and `nodeType` stand everywhere but at `run`, which has `graphName`, `resuming`, `nested`; the rest belongs to
 * the seam that its comment names.
 */
export interface Subject {
  readonly nodeName?: string
  /** The Agent Spec type in a flow; in code `Node`, `ModelNode`, `ToolNode`, `AgentNode`, `GraphNode`. */
  readonly nodeType?: string
  /** `run` */
  readonly graphName?: string
  /** `run` */
  readonly resuming?: boolean
  /** `run`: whether another run started this one. */
  readonly nested?: boolean
  /** `toolCall` */
  readonly toolName?: string
  /** `toolCall`: the model's id of the call, or one of ours where no model asked. */
  readonly toolCallId?: string
  /** `toolCall` */
  readonly caller?: Caller
  /** `toolCall`: what the host resolved the name to, `code`, `tools-dir`, `plugin:<name>` or `mcp:<server>`. */
  readonly source?: string
  /** `ask` */
  readonly key?: string
  /** `ask`: `graph`, `policy:<Type>` or `engine`. */
  readonly askedBy?: string
}
