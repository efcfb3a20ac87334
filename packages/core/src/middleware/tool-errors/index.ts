import { isMistake, unrunIn } from '../../agent/answer-calls.ts'
import type { ChatMessage, ChatRequest, ToolCallRequest } from '../../chat/chat.ts'
import { messageOf } from '../../errors/error.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import { ToolDeniedError, ToolReplyError } from '../../seams/failure.ts'
import { typeOf } from '../../seams/hooks.ts'
import type { WrapOutcome } from '../../seams/own.ts'
import type { ModelMiddlewareContext, ToolMiddlewareContext } from '../contexts.ts'
import { Middleware, type NextOf } from '../middleware.ts'
import { requireCount } from '../options.ts'
import { readBy, readMembers } from '../reading.ts'
import { isTimeOut } from '../transient.ts'

/**
 * What went wrong: the model named a tool that there is not; its arguments are no JSON or do not fit; the time was over; the tool
 * threw.
 */
export type ToolErrorKind = 'unknown' | 'arguments' | 'timeout' | 'failed'

/** A tool call that went wrong. */
export interface ToolFault {
  readonly kind: ToolErrorKind
  readonly toolName: string
  /** What the error says. */
  readonly message: string
  /** The very error, where the tool was called. */
  readonly error?: unknown
}

/** What the model reads of a fault: a text, or a function that makes one; where it makes none, the text stays as it is. */
export type ToolErrorText = string | ((fault: ToolFault) => string | undefined)
export type ToolErrorTexts = { readonly [Kind in ToolErrorKind]?: ToolErrorText }

export interface ToolErrorOptions {
  /** What the model reads, by what went wrong. */
  readonly say?: ToolErrorTexts
  /** The same for single tools, by name, before `say`. */
  readonly perTool?: Readonly<Record<string, ToolErrorTexts>>
  /** Faults of one turn after which the model is not asked again; 20 without it. */
  readonly maxErrors?: number
  /** Names it; two in one graph need two names. */
  readonly name?: string
}

interface Count {
  readonly errors: number
}

const KINDS = ['unknown', 'arguments', 'timeout', 'failed'] as const

const DEFAULTS: ToolErrorTexts = {
  arguments: ({ message }) => `Error: ${message.replace(/\.$/, '')}. Call it again with arguments that fit.`,
  timeout: ({ message }) => `Error: ${message}. It may have done its work all the same: look before you call it again.`,
  failed: ({ message }) => `Error: ${message}`,
}

const counted = readBy((value): Count => (value === undefined ? { errors: 0 } : (value as Count)))

/**
 * Makes of what goes wrong with the tool calls of a model a text that it can act on, by tool and by what it was, and bounds how
 * often that may happen in a turn. Errors of tools are replies also where an agent raises them. Calls that code makes, refusals and
 * mistakes of whoever wrote the agent are left alone.
 */
export class ToolErrorMiddleware extends Middleware<unknown, unknown, Count> {
  override readonly name: string
  override readonly aboutTools: readonly string[]
  override readonly kept = { scope: 'turn', schema: counted } as const
  /** What tries again or gives up stands inside, so that a fault is one only when nothing more is done about it. */
  override readonly order = {
    before: ['CallTimeoutMiddleware', 'ModelFallbackMiddleware', 'ModelRetryMiddleware', 'ToolRetryMiddleware'],
  }
  readonly #options: ToolErrorOptions
  readonly #maxErrors: number

  /** @throws TypeError for an option that there is not or that is of another type; RangeError for a number out of range. */
  constructor(options: ToolErrorOptions = {}) {
    super()
    const { say = {}, perTool = {}, maxErrors = 20, name = 'ToolErrorMiddleware' } = options
    readMembers(options, ['say', 'perTool', 'maxErrors', 'name'], name)
    for (const [at, texts] of [['say', say], ...Object.entries(perTool)] as const) {
      requireTexts(`${name}: ${at}`, texts)
    }
    requireCount(name, 'maxErrors', maxErrors)
    this.name = name
    this.aboutTools = Object.keys(perTool)
    this.#options = options
    this.#maxErrors = maxErrors
  }

  override async wrapTool(
    _args: JsonObject,
    next: NextOf<JsonObject, Json>,
    ctx: ToolMiddlewareContext<unknown, unknown, Count>,
  ): Promise<WrapOutcome<Json>> {
    const outcome = await next()
    if (outcome.ok || outcome.refused || ctx.caller !== 'model') return outcome
    const { error } = outcome
    if (error instanceof ToolDeniedError || isMistake(error)) return outcome
    if (!ctx.revisit) ctx.kept.update(({ errors }) => ({ errors: errors + 1 }))
    const { toolName } = ctx
    const reply = this.#textOf({ kind: kindOf(error), toolName, message: messageOf(error), error })
    return reply === undefined ? outcome : { ok: false, error: new ToolReplyError(toolName, reply, error) }
  }

  /** Calls that never came to a tool are found in the conversation: no hook stands where the agent answers them. */
  override beforeModel(ctx: ModelMiddlewareContext<unknown, unknown, Count>) {
    const { messages } = ctx.request
    const faults = faultsIn(messages)
    const last = messages.findLastIndex(({ role }) => role !== 'tool')
    const fresh = [...faults.keys()].filter((at) => at > last).length
    // The very same conversation is sent again in a further attempt.
    if (fresh > 0 && ctx.attempt === 1 && !ctx.revisit) ctx.kept.update(({ errors }) => ({ errors: errors + fresh }))
    const { errors } = ctx.kept.value
    if (errors > this.#maxErrors) {
      return ctx.reject(`${errors} tool calls of this turn went wrong, and ${this.#maxErrors} are the most.`)
    }
    const told = messages.map((message, i) => this.#retold(message, faults.get(i)))
    return told.every((message, i) => message === messages[i]) ? undefined : ctx.replace({ messages: told })
  }

  #retold(message: ChatMessage, fault: ToolFault | undefined): ChatMessage {
    const content = fault && this.#textOf(fault)
    return content === undefined || content === message.content ? message : { ...message, content }
  }

  #textOf(fault: ToolFault): string | undefined {
    const { say = {}, perTool = {} } = this.#options
    const own = Object.hasOwn(perTool, fault.toolName) ? perTool[fault.toolName] : undefined
    const text = own?.[fault.kind] ?? say[fault.kind] ?? DEFAULTS[fault.kind]
    const said: unknown = typeof text === 'function' ? text(fault) : text
    if (said === undefined || typeof said === 'string') return said
    throw new TypeError(`it made ${typeOf(said)} of an error of tool "${fault.toolName}"; it must make a text`)
  }
}

function kindOf(error: unknown): ToolErrorKind {
  if (isTimeOut(error)) return 'timeout'
  return (error as { code?: unknown } | null)?.code === 'TOOL_ARGUMENTS' ? 'arguments' : 'failed'
}

/** Calls that were answered without having come to a tool, by the index of the message that says so. */
function faultsIn(messages: ChatRequest['messages']): ReadonlyMap<number, ToolFault> {
  const faults = new Map<number, ToolFault>()
  let calls: readonly ToolCallRequest[] = []
  for (const [i, { role, content, tool_calls, tool_call_id }] of messages.entries()) {
    if (role !== 'tool') {
      calls = tool_calls ?? []
      continue
    }
    const kind = unrunIn(content)
    const call = calls.find(({ id }) => id === tool_call_id)
    if (kind === undefined || call === undefined) continue
    faults.set(i, { kind, toolName: call.name, message: content.slice('Error: '.length) })
  }
  return faults
}

function requireTexts(what: string, texts: unknown): void {
  const given = readMembers(texts, KINDS, what)
  for (const kind of KINDS) {
    const text = given[kind]
    if (text === undefined || typeof text === 'string' || typeof text === 'function') continue
    throw new TypeError(`${what}.${kind} must be a text, or a function that makes one, not ${typeOf(text)}.`)
  }
}
