import type { ChatMessage, ChatResponse, ToolDefinition } from '../../chat/chat.ts'
import type { ChatModel } from '../../chat/model.ts'
import { messageOf } from '../../errors/error.ts'
import { digestOf } from '../../json/digest.ts'
import { isObject, type Json } from '../../json/json.ts'
import type { ModelMiddlewareContext } from '../contexts.ts'
import { Middleware } from '../middleware.ts'
import { readBy, readMembers } from '../reading.ts'

export interface ToolSelectionOptions {
  /** The model that chooses: a small one will do. A name is one that the runtime knows. */
  readonly model: ChatModel | string
  /** Tools that may be chosen, beside those that are always offered: a whole number of 1 or more; 5 without it. */
  readonly maxTools?: number
  /** Tools that are offered whatever is chosen, by name. */
  readonly always?: readonly string[]
  /** Whether it is chosen once for all calls of a turn, or anew for each. `turn` without it. */
  readonly every?: 'turn' | 'call'
  /** What the model that chooses is told of its task; a list of the tools follows. */
  readonly instructions?: string
  /** Names it where there are two; `ToolSelectionMiddleware` without it. */
  readonly name?: string
}

const OPTIONS = ['model', 'maxTools', 'always', 'every', 'instructions', 'name'] as const

const INSTRUCTIONS =
  'Choose the tools that are needed to answer the conversation below. Do not answer it. ' +
  'Reply with JSON only: {"tools": ["name", …]}, the most useful first.'

/** What was chosen, by what it was chosen for. */
type Choices = Readonly<Record<string, readonly string[]>>

type Context = ModelMiddlewareContext<unknown, unknown, Choices>

/** Choices that are kept: as many calls may be under way at once. */
const MAX_CHOICES = 100

const choices = readBy((value): Choices => (value === undefined ? {} : (value as Choices)))

/**
 * Lets a model choose which tools a request offers, where there are more than a model chooses well among. Whatever goes wrong with
 * the choice is a warning, and all tools are offered.
 *
 * @throws TypeError without a model and for an unknown option; RangeError for a number or a word that is none.
 */
export class ToolSelectionMiddleware extends Middleware<unknown, unknown, Choices> {
  override readonly name: string
  override readonly aboutTools: readonly string[]
  override readonly kept = { scope: 'turn', schema: choices } as const
  readonly #model: ChatModel | string
  readonly #maxTools: number
  readonly #always: ReadonlySet<string>
  readonly #every: 'turn' | 'call'
  readonly #instructions: string

  constructor(options: ToolSelectionOptions) {
    super()
    readMembers(options, OPTIONS, 'ToolSelectionMiddleware')
    const { model, maxTools = 5, always = [], every = 'turn', instructions = INSTRUCTIONS } = options
    this.name = options.name ?? 'ToolSelectionMiddleware'
    if (model === undefined) throw new TypeError(`${this.name}: give the model that chooses.`)
    if (!Number.isSafeInteger(maxTools) || maxTools < 1) {
      throw new RangeError(`${this.name}: maxTools is ${maxTools}; give a whole number of 1 or more.`)
    }
    if (every !== 'turn' && every !== 'call') {
      throw new RangeError(`${this.name}: every is "${every}"; give "turn" or "call".`)
    }
    this.#model = model
    this.#maxTools = maxTools
    this.#always = new Set(always)
    this.aboutTools = always
    this.#every = every
    this.#instructions = instructions
  }

  override async beforeModel(ctx: Context) {
    const { tools = [], messages } = ctx.request
    const open = tools.filter(({ name }) => !this.#always.has(name))
    if (open.length <= this.#maxTools) return undefined
    const key = this.#every === 'call' ? `${ctx.callKey} ${ctx.attempt}` : digestOf(open.map(({ name }) => name))
    // Entered anew, a call is given the tools that it had.
    const known = Object.hasOwn(ctx.kept.value, key) ? ctx.kept.value[key] : undefined
    const chosen = known ?? (await this.#choose(ctx, open, messages))
    if (chosen === undefined) return undefined
    if (known === undefined)
      ctx.kept.update((now) => Object.fromEntries([...Object.entries(now).slice(1 - MAX_CHOICES), [key, chosen]]))
    return ctx.replace({ tools: tools.filter(({ name }) => this.#always.has(name) || chosen.includes(name)) })
  }

  async #choose(
    ctx: Context,
    open: readonly ToolDefinition[],
    messages: readonly ChatMessage[],
  ): Promise<readonly string[] | undefined> {
    try {
      const named = namesIn(await ctx.callModel(this.#model, this.#question(open, messages)))
      const unknown = named.filter((name) => !open.some((tool) => tool.name === name) && !this.#always.has(name))
      if (unknown.length > 0) ctx.warn(`the model chose tools that there are not: ${unknown.join(', ')}.`)
      return named.filter((name) => open.some((tool) => tool.name === name)).slice(0, this.#maxTools)
    } catch (error) {
      ctx.warn(`tools could not be chosen, so all are offered: ${messageOf(error)}`)
      return undefined
    }
  }

  /** The conversation is handed on as text in one message: whatever stands in it, the model is to choose and not to answer. */
  #question(open: readonly ToolDefinition[], messages: readonly ChatMessage[]) {
    const list = open.map(({ name, description }) => `- ${name}: ${description}`).join('\n')
    const system = `${this.#instructions} Choose at most ${this.#maxTools}.\n\nTools:\n${list}`
    const said = messages.filter(({ role, content }) => role !== 'system' && role !== 'tool' && content !== '')
    const content = said.map((message) => `${message.role}: ${message.content}`).join('\n')
    return {
      messages: [
        { role: 'system', content: system },
        { role: 'user', content },
      ] as const,
      responseFormat: { type: 'json_schema', name: 'tools', schema: schemaOf(open) } as Json,
    }
  }
}

const schemaOf = (open: readonly ToolDefinition[]): Json => ({
  type: 'object',
  properties: { tools: { type: 'array', items: { type: 'string', enum: open.map(({ name }) => name) } } },
  required: ['tools'],
  additionalProperties: false,
})

/** The names in a reply, which may have words around its JSON. */
function namesIn({ content }: ChatResponse): readonly string[] {
  const value: unknown = JSON.parse(content.slice(content.indexOf('{'), content.lastIndexOf('}') + 1))
  const tools = isObject(value) ? value.tools : undefined
  if (Array.isArray(tools) && tools.every((name) => typeof name === 'string')) return [...new Set<string>(tools)]
  throw new TypeError('the reply has no list "tools"')
}
