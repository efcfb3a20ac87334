import { isObject, type Json, type JsonObject, type ShownOutcome, type Subject } from '@sluice/core'

/** The events of command hooks that a seam answers to: where each stands, and what its hooks may say there. */
export const EVENTS = {
  SessionStart: { matchedBy: 'source', blocks: false, fields: ['additionalContext'] },
  UserPromptSubmit: { matchedBy: undefined, blocks: true, fields: ['additionalContext'] },
  PreToolUse: {
    matchedBy: 'tool',
    blocks: true,
    fields: ['permissionDecision', 'permissionDecisionReason', 'updatedInput'],
  },
  PostToolUse: { matchedBy: 'tool', blocks: true, fields: ['additionalContext', 'updatedToolOutput'] },
  PostToolUseFailure: { matchedBy: 'tool', blocks: false, fields: [] },
  SessionEnd: { matchedBy: undefined, blocks: false, fields: [] },
} as const satisfies Record<string, EventRow>

interface EventRow {
  /** What a matcher is compared with; an event without has one for all. */
  readonly matchedBy: 'tool' | 'source' | undefined
  /** Whether a "no" stops anything; elsewhere the reason is shown only. */
  readonly blocks: boolean
  /** What `hookSpecificOutput` may hold besides `hookEventName`. */
  readonly fields: readonly string[]
}

export type EventName = keyof typeof EVENTS

export const isEvent = (name: string): name is EventName => Object.hasOwn(EVENTS, name)

const GOES_ON = 'is not served: no half lets a policy send an agent on when it is done'
const SUMMARY = 'is not served: a summary is a model call like any other here'
const PERSON = 'is not served: questions to a person pass the seam "ask"; write a policy for it'
const NO_SEAM = 'is not served: nothing of that kind passes a seam'

/** Events that are known elsewhere and not served here, and why. */
export const REFUSED_EVENTS: { readonly [event: string]: string } = {
  Stop: GOES_ON,
  SubagentStop: GOES_ON,
  StopFailure: GOES_ON,
  PreCompact: SUMMARY,
  PostCompact: SUMMARY,
  PermissionRequest: PERSON,
  PermissionDenied: PERSON,
  Elicitation: PERSON,
  ElicitationResult: PERSON,
  ...Object.fromEntries(
    [
      'Setup',
      'InstructionsLoaded',
      'UserPromptExpansion',
      'MessageDisplay',
      'PostToolBatch',
      'Notification',
      'SubagentStart',
      'TaskCreated',
      'TaskCompleted',
      'TeammateIdle',
      'ConfigChange',
      'CwdChanged',
      'FileChanged',
      'WorktreeCreate',
      'WorktreeRemove',
    ].map((event) => [event, NO_SEAM]),
  ),
}

/** What a hook is told beside the common fields, and the name that its matcher is compared with. */
export interface Told {
  readonly event: EventName
  readonly name: string
  readonly fields: JsonObject
}

export function preToolUse(subject: Subject, input: Json): Told {
  return { event: 'PreToolUse', name: toolName(subject), fields: toolFields(subject, input) }
}

export function postToolUse(subject: Subject, input: Json, outcome: ShownOutcome): Told {
  const came: JsonObject = outcome.ok
    ? { tool_response: outcome.value }
    : { error: outcome.error.message, is_interrupt: false }
  return {
    event: outcome.ok ? 'PostToolUse' : 'PostToolUseFailure',
    name: toolName(subject),
    fields: { ...toolFields(subject, input), ...came },
  }
}

export function sessionStart({ resuming }: Subject): Told {
  const source = resuming === true ? 'resume' : 'startup'
  return { event: 'SessionStart', name: source, fields: { source } }
}

export function userPromptSubmit(input: Json): Told {
  return { event: 'UserPromptSubmit', name: '', fields: { permission_mode: 'default', prompt: promptIn(input) } }
}

export const sessionEnd = (): Told => ({ event: 'SessionEnd', name: '', fields: { reason: 'other' } })

const toolFields = (subject: Subject, input: Json): JsonObject => ({
  permission_mode: 'default',
  tool_name: toolName(subject),
  tool_input: input,
  tool_use_id: subject.toolCallId ?? '',
})

/** A tool of an MCP server is `mcp__<server>__<tool>`. */
function toolName({ toolName = '', source = '' }: Subject): string {
  const [, server] = /^mcp:(.+)$/.exec(source) ?? []
  return server === undefined ? toolName : `mcp__${server}__${toolName}`
}

/** What was asked: the last words of the user, the only text, or the whole input as JSON. */
function promptIn(input: Json): string {
  if (!isObject(input)) return JSON.stringify(input)
  if (hasMessages(input)) {
    const last = input.messages.findLast((message) => isObject(message) && message.role === 'user')
    if (isObject(last) && typeof last.content === 'string') return last.content
  }
  const values = Object.values(input)
  const [only] = values
  return values.length === 1 && typeof only === 'string' ? only : JSON.stringify(input)
}

type Talk = { readonly [field: string]: Json | undefined; readonly messages: readonly Json[] }

/** Whether an input is a conversation, to which something can be added. */
export const hasMessages = (input: Json): input is Talk & JsonObject => isObject(input) && Array.isArray(input.messages)
