import type { ChatMessage } from '../../chat/chat.ts'
import type { ChatModel } from '../../chat/model.ts'
import { messageOf, SluiceError } from '../../errors/error.ts'
import { isObject, type Json, type JsonObject } from '../../json/json.ts'
import type { WrapOutcome } from '../../seams/own.ts'
import type { ToolMiddlewareContext } from '../contexts.ts'
import { Middleware, type NextOf } from '../middleware.ts'
import { readNames, requireCount, requireText } from '../options.ts'
import { readMembers } from '../reading.ts'

export interface ToolEmulationOptions {
  /** Who plays the tools: a model, or the name of one that the runtime has. */
  readonly model: ChatModel | string
  /** Names of the tools that are played; every tool without it. */
  readonly tools?: readonly string[]
  /** What the model is told beside the tool and its arguments: how the world is in which it plays. */
  readonly instructions?: string
  /** How often it is asked for a result that fits, the first time included; 2 without it. */
  readonly maxAttempts?: number
  /** Names it; two in one graph need two names. */
  readonly name?: string
}

const PART =
  'You play a tool that a program calls. Answer with what the tool would give back, as JSON and nothing else: no explanation, no code fence. Make up what you do not know, plausibly and in keeping with the arguments.'

/**
 * Lets a model play tools, which then do not run: for trying an agent out before its tools are there, or where they would do harm.
 * What it says is read like the tool's own result, and stands in the run as supplied by this middleware.
 */
export class ToolEmulationMiddleware extends Middleware {
  override readonly name: string
  override readonly aboutTools: readonly string[]
  readonly #model: ChatModel | string
  readonly #tools: ReadonlySet<string> | undefined
  readonly #part: string
  readonly #maxAttempts: number

  /** @throws TypeError for an option that is wrong; RangeError for a number out of range. */
  constructor(options: ToolEmulationOptions) {
    super()
    const { model, tools, instructions, maxAttempts = 2, name = 'ToolEmulationMiddleware' } = options
    readMembers(options, ['model', 'tools', 'instructions', 'maxAttempts', 'name'], name)
    if (typeof model !== 'string' && !(isObject(model) && typeof model.chat === 'function')) {
      throw new TypeError(`${name}: model must be a model, or the name of one.`)
    }
    if (instructions !== undefined) requireText(name, 'instructions', instructions)
    requireCount(name, 'maxAttempts', maxAttempts)
    this.name = name
    this.#model = model
    this.#tools = tools === undefined ? undefined : readNames(name, 'tools', tools)
    this.aboutTools = [...(this.#tools ?? [])]
    this.#part = instructions === undefined ? PART : `${PART}\n\n${instructions}`
    this.#maxAttempts = maxAttempts
  }

  override async wrapTool(
    args: JsonObject,
    next: NextOf<JsonObject, Json>,
    ctx: ToolMiddlewareContext,
  ): Promise<WrapOutcome<Json>> {
    if (this.#tools?.has(ctx.toolName) === false) return next()
    const { name, description, parameters } = ctx.tool
    const call = JSON.stringify({ tool: { name, description, parameters }, arguments: args })
    const messages: ChatMessage[] = [
      { role: 'system', content: this.#part },
      { role: 'user', content: call },
    ]
    let misfit: unknown
    for (let attempt = 1; attempt <= this.#maxAttempts; attempt++) {
      try {
        const { content } = await ctx.callModel(this.#model, { messages })
        messages.push({ role: 'assistant', content })
        const value = jsonIn(content)
        ctx.tool.readResult(value)
        return { ok: true, value }
      } catch (error) {
        misfit = error
        // Where it did not even answer, it is asked the same again.
        if (messages.at(-1)?.role === 'assistant') messages.push({ role: 'user', content: mending(error) })
      }
    }
    return { ok: false, error: unplayed(name, this.#maxAttempts, misfit) }
  }
}

/** What a model means by a text: the JSON in it, with or without a code fence, or else the text itself. */
function jsonIn(content: string): Json {
  const text = /^\s*```(?:json)?\s*([\s\S]*?)\s*```\s*$/.exec(content)?.[1] ?? content
  try {
    return JSON.parse(text)
  } catch {
    return content
  }
}

const mending = (error: unknown): string =>
  `That is not what the tool gives back: ${messageOf(error)} Answer again, with JSON that fits.`

const unplayed = (tool: string, attempts: number, cause: unknown): SluiceError =>
  new SluiceError(
    'TOOL_EMULATION',
    `the model that plays tool "${tool}" gave no result that fits in ${attempts} attempts: ${messageOf(cause)}`,
    { tool },
    cause,
  )
