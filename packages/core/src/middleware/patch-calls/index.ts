import type { ChatMessage } from '../../chat/chat.ts'
import { NOT_EXECUTED } from '../../chat/history.ts'
import { isObject } from '../../json/json.ts'
import { replaceWith } from '../../state/field.ts'
import type { ModelMiddlewareContext, NodeMiddlewareContext } from '../contexts.ts'
import { Middleware } from '../middleware.ts'
import { requireText } from '../options.ts'
import { readMembers } from '../reading.ts'
import { mended, pendingFrom } from './mend.ts'

export interface PatchCallsOptions {
  /** What stands for the answer that a call never had; `Tool call was not executed.` without it. */
  readonly text?: string
  /** The field of the state whose conversation is mended too, with the next update of it; without it, only requests are. */
  readonly field?: string
  /** Names it; two in one graph need two names. */
  readonly name?: string
}

/**
 * Mends the conversation of each request, so that providers take it: calls that nobody answered and answers that nobody asked for,
 * as a turn leaves them that failed between a model and its tools. What is stored stays as it is, unless a field is named.
 */
export class PatchCallsMiddleware extends Middleware {
  override readonly name: string
  readonly #text: string
  readonly #field: string | undefined

  /** @throws TypeError for an option that there is not, or that is no text. */
  constructor(options: PatchCallsOptions = {}) {
    super()
    const { text = NOT_EXECUTED, field, name = 'PatchCallsMiddleware' } = options
    readMembers(options, ['text', 'field', 'name'], name)
    requireText(name, 'text', text)
    if (field !== undefined) requireText(name, 'field', field)
    this.name = name
    this.#text = text
    this.#field = field
  }

  override beforeModel(ctx: ModelMiddlewareContext) {
    const { messages } = ctx.request
    const whole = mended(messages, this.#text)
    return whole === messages ? undefined : ctx.replace({ messages: whole })
  }

  /** Another node may write the field in the same superstep, and two updates of the whole would not merge: then it waits. */
  override afterNode(ctx: NodeMiddlewareContext) {
    const field = this.#field
    if (field === undefined || ctx.superstepSize > 1) return undefined
    const update = ctx.state as Readonly<Record<string, unknown>>
    const [stored, added] = [(ctx.storedState as Readonly<Record<string, unknown>>)[field], update[field]]
    if (!Array.isArray(stored) || !Array.isArray(added) || !added.every(isAddition)) return undefined
    const all: readonly ChatMessage[] = [...stored, ...added]
    const pending = pendingFrom(all)
    const head = all.slice(0, pending)
    const whole = mended(head, this.#text)
    return whole === head
      ? undefined
      : ctx.replace({ ...update, [field]: replaceWith([...whole, ...all.slice(pending)]) })
  }
}

/** What is added at the end, and neither taken out nor put in the place of another. */
const isAddition = (item: unknown): boolean => isObject(item) && typeof item.role === 'string' && item.id === undefined
