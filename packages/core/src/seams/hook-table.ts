import type { Half, Seam } from './table.ts'

/** What a hook may say, in the words that authors use: `replace` before a step changes its input, `answer` stands in for it. */
export type HookAction = 'replace' | 'answer' | 'reject' | 'retry' | 'suspend' | 'fail'

export interface HookRow {
  readonly seam: Seam
  readonly half: Half
  /** What it may say with `ctx.…(…)`; nothing, where it only observes. */
  readonly says: readonly HookAction[]
  /** Whether what it returns by itself is the result: a node's, a response, an answer. */
  readonly returns?: true
}

/**
 * The hooks of own middleware: the seam and the half at which each stands, and what it may say there. The table is closed;
 * the types of hooks, the check of their names and the reader of what they return are derived from it. Hooks that say nothing
 * observe. Wraps stand around both halves and exchange outcomes.
 */
export const HOOKS = {
  beforeGraph: { seam: 'run', half: 'before', says: [] },
  afterGraph: { seam: 'run', half: 'after', says: [] },
  onRunEnd: { seam: 'run', half: 'after', says: [] },
  beforeNode: { seam: 'node', half: 'before', says: ['replace', 'answer', 'reject', 'suspend'] },
  afterNode: { seam: 'node', half: 'after', says: ['replace', 'fail'] },
  onError: { seam: 'nodeError', half: 'after', says: ['retry', 'fail'], returns: true },
  wrapNode: { seam: 'node', half: 'before', says: [] },
  beforeRound: { seam: 'agentRound', half: 'before', says: ['reject'] },
  afterRound: { seam: 'agentRound', half: 'after', says: ['fail'] },
  beforeModel: { seam: 'modelCall', half: 'before', says: ['replace', 'answer', 'reject', 'suspend'] },
  afterModel: { seam: 'modelCall', half: 'after', says: ['replace', 'retry', 'fail'] },
  onModelError: { seam: 'modelCall', half: 'after', says: ['retry', 'fail'], returns: true },
  wrapModel: { seam: 'modelCall', half: 'before', says: [] },
  beforeTool: { seam: 'toolCall', half: 'before', says: ['replace', 'answer', 'reject', 'suspend'] },
  afterTool: { seam: 'toolCall', half: 'after', says: ['replace', 'reject', 'fail'] },
  onToolError: { seam: 'toolCall', half: 'after', says: [] },
  wrapTool: { seam: 'toolCall', half: 'before', says: [] },
  onInterrupt: { seam: 'ask', half: 'before', says: [], returns: true },
} as const satisfies Record<string, HookRow>

/** Names of the hooks that own middleware may define. */
export type HookName = keyof typeof HOOKS

export const HOOK_NAMES = Object.freeze(Object.keys(HOOKS)) as readonly HookName[]
