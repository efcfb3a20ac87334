import type { ChatMessage, ChatRequest } from '../../chat/chat.ts'
import { estimateInputTokens } from '../../chat/usage.ts'
import type { ModelMiddlewareContext } from '../contexts.ts'
import { Middleware } from '../middleware.ts'
import { readMembers } from '../reading.ts'

/** Counts the tokens of what is sent. */
export type CountTokens = (request: Pick<ChatRequest, 'messages' | 'tools'>) => number

export interface ContextEditingOptions {
  /** Tokens that a request may have, its system prompt and tools included: a whole number of 1 or more; 100,000 without it. */
  readonly maxTokens?: number
  /** The newest results that always stay: a whole number from 0; 3 without it. */
  readonly keep?: number
  /** Tools whose results always stay, by name. */
  readonly excludeTools?: readonly string[]
  /** What stands in the place of a result. */
  readonly placeholder?: string
  /** Whether the arguments of cleared calls go too. They stay without it. */
  readonly clearArguments?: boolean
  /**
   * Clears in steps of so many tokens: a whole number from 0. What was sent before then stays the same for some rounds, which is what
   * a provider's prompt cache lives on. 0 without it: as little as is needed.
   */
  readonly clearAtLeast?: number
  /** Counts tokens; without it, four characters are one. */
  readonly countTokens?: CountTokens
  /** Names it where there are two; `ContextEditingMiddleware` without it. */
  readonly name?: string
}

const OPTIONS = [
  'maxTokens',
  'keep',
  'excludeTools',
  'placeholder',
  'clearArguments',
  'clearAtLeast',
  'countTokens',
  'name',
] as const

const PLACEHOLDER = '[This result was cleared to save space. Call the tool again if you need it.]'

/**
 * Clears old tool results in a request that has grown too long, the oldest first, until it fits. Each call keeps its answer, so the
 * conversation stays one that providers take, and nothing of it is stored: the next request begins with the whole conversation.
 *
 * @throws TypeError for an unknown option; RangeError for a number that is none of the kind it must be.
 */
export class ContextEditingMiddleware extends Middleware {
  override readonly name: string
  override readonly aboutTools: readonly string[]
  readonly #maxTokens: number
  readonly #keep: number
  readonly #excluded: ReadonlySet<string>
  readonly #placeholder: string
  readonly #clearArguments: boolean
  readonly #step: number
  readonly #count: CountTokens

  constructor(options: ContextEditingOptions = {}) {
    super()
    readMembers(options, OPTIONS, 'ContextEditingMiddleware')
    const { maxTokens = 100_000, keep = 3, clearAtLeast = 0, excludeTools = [] } = options
    requireWhole('maxTokens', maxTokens, 1)
    requireWhole('keep', keep, 0)
    requireWhole('clearAtLeast', clearAtLeast, 0)
    this.name = options.name ?? 'ContextEditingMiddleware'
    this.#maxTokens = maxTokens
    this.#keep = keep
    this.#excluded = new Set(excludeTools)
    this.aboutTools = excludeTools
    this.#placeholder = options.placeholder ?? PLACEHOLDER
    this.#clearArguments = options.clearArguments ?? false
    this.#step = clearAtLeast
    this.#count = options.countTokens ?? estimateInputTokens
  }

  override beforeModel(ctx: ModelMiddlewareContext) {
    const { messages } = ctx.request
    const over = this.#count(ctx.request) - this.#maxTokens
    if (over <= 0) return undefined
    const wanted = this.#step === 0 ? over : Math.ceil(over / this.#step) * this.#step
    const cleared = this.#clear(messages, wanted)
    if (cleared.saved < over) {
      ctx.warn(
        `the request has ${over - cleared.saved} tokens more than ${this.#maxTokens}, and nothing more to clear.`,
      )
    }
    return cleared.saved === 0 ? undefined : ctx.replace({ messages: cleared.messages })
  }

  /** The messages with as many results cleared as save so many tokens. */
  #clear(messages: readonly ChatMessage[], wanted: number): { messages: readonly ChatMessage[]; saved: number } {
    const left = [...messages]
    let saved = 0
    for (const pair of this.#clearable(messages)) {
      if (saved >= wanted) break
      for (const [at, message] of this.#cleared(left, pair)) {
        const saves = this.#count({ messages: [left[at] as ChatMessage] }) - this.#count({ messages: [message] })
        if (saves <= 0) continue
        left[at] = message
        saved += saves
      }
    }
    return { messages: left, saved }
  }

  /** Results that may go, the oldest first, each with the message that called for it. */
  #clearable(messages: readonly ChatMessage[]): readonly Pair[] {
    const calls = new Map<string, { readonly at: number; readonly tool: string }>()
    const pairs: Pair[] = []
    for (const [at, { role, tool_calls = [], tool_call_id }] of messages.entries()) {
      for (const { id, name } of tool_calls) calls.set(id, { at, tool: name })
      if (role !== 'tool') continue
      const call = calls.get(tool_call_id ?? '')
      pairs.push({ result: at, call: call?.at, id: tool_call_id, tool: call?.tool })
    }
    const old = pairs.slice(0, Math.max(0, pairs.length - this.#keep))
    return old.filter(({ tool }) => tool === undefined || !this.#excluded.has(tool))
  }

  *#cleared(messages: readonly ChatMessage[], { result, call, id }: Pair): Generator<readonly [number, ChatMessage]> {
    yield [result, { ...(messages[result] as ChatMessage), content: this.#placeholder }]
    if (!this.#clearArguments || call === undefined) return
    const { tool_calls = [], ...asked } = messages[call] as ChatMessage
    yield [
      call,
      { ...asked, tool_calls: tool_calls.map((each) => (each.id === id ? { ...each, arguments: '{}' } : each)) },
    ]
  }
}

/** Where a result stands and where it was called for. */
interface Pair {
  readonly result: number
  readonly call: number | undefined
  readonly id: string | undefined
  readonly tool: string | undefined
}

function requireWhole(option: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return
  throw new RangeError(`ContextEditingMiddleware: ${option} is ${value}; give a whole number from ${least}.`)
}
