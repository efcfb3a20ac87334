import type { ChatMessage, ChatRequest } from '../../chat/chat.ts'
import { reduceMessages } from '../../chat/messages.ts'
import type { ChatModel } from '../../chat/model.ts'
import { SluiceError } from '../../errors/error.ts'
import { digestOf } from '../../json/digest.ts'
import { isObject, type Json, type JsonObject } from '../../json/json.ts'
import type { WrapOutcome } from '../../seams/own.ts'
import { replaceWith } from '../../state/field.ts'
import { type Tool, tool } from '../../tools/tool.ts'
import type { ModelMiddlewareContext, NodeMiddlewareContext, ToolMiddlewareContext } from '../contexts.ts'
import { Middleware, type NextOf, type NextOfModel } from '../middleware.ts'
import { readBy, readMembers } from '../reading.ts'
import { conversationOf, cutsAt, placesIn } from './conversation.ts'
import { approximateTokens, type TokenCounter } from './tokens.ts'
import { DEFAULT_SUMMARY_PROMPT, transcriptOf } from './transcript.ts'
import type { RecentPolicy, SummarizationDecision, SummarizationTrigger } from './when.ts'

export { approximateTokens, type Counted, type TokenCounter } from './tokens.ts'
export {
  fixedTokens,
  messageCount,
  type RecentPolicy,
  recentMessages,
  recentTokens,
  type SummarizationDecision,
  type SummarizationTrigger,
  tokenLimit,
} from './when.ts'

export interface SummarizationOptions {
  /** Who summarizes: a model, or the name of one in the runtime. */
  readonly model: ChatModel | string
  /** When a request is too long; of several, any. */
  readonly trigger: SummarizationTrigger | readonly SummarizationTrigger[]
  /** What of the conversation stays as it is. */
  readonly recent: RecentPolicy
  /** {@link approximateTokens} without it. */
  readonly counter?: TokenCounter
  /** What the summarizing model is told to do; it is given the transcript after it. */
  readonly prompt?: string
  /** Makes the message that stands for what was summarized; one of the user without it. */
  readonly summaryMessage?: (summary: string) => ChatMessage
  /** Gives an agent the tool `summarize_context`, which sums up what is older and changes nothing. */
  readonly provideTool?: boolean
  /** Names it where there are two; `SummarizationMiddleware` without it. */
  readonly name?: string
}

/** What `summarize_context` gives. */
export interface SummarizationResult {
  /** Empty where nothing is older. */
  readonly summary: string
  readonly originalMessageCount: number
  readonly summarizedMessageCount: number
  readonly keptMessageCount: number
  readonly tokenCount: number
  /** `requested`, or `no_older_messages`. */
  readonly reason: string
}

/** The first `count` messages of a conversation, told by their digest, and what stands for them. */
interface Summary {
  readonly count: number
  readonly digest: string
  readonly message: ChatMessage
}

type Messages = readonly ChatMessage[]
type Ctx = ModelMiddlewareContext<unknown, unknown, readonly Summary[]>

/** What is kept is at most 64 KiB, and these stay below. */
const MAX_SUMMARY = 24_000
const MAX_KEPT = 56_000

const OPTIONS = ['model', 'trigger', 'recent', 'counter', 'prompt', 'summaryMessage', 'provideTool', 'name'] as const

const summaries = readBy((value): readonly Summary[] => (value === undefined ? [] : (value as readonly Summary[])))

const inUserWords = (summary: string): ChatMessage => ({
  role: 'user',
  content: `Summary of the conversation so far:\n\n${summary}`,
})

/**
 * Replaces the older part of a conversation by a summary when a request becomes too long. A call and its results stay together.
 * The summary is sent in place of what it stands for, takes its place in `messages` of the state when the node is through, and is
 * kept with the thread until then, so that no round and no pause pays for it again.
 *
 * @throws TypeError for an option that is missing or none.
 */
export class SummarizationMiddleware extends Middleware<unknown, unknown, readonly Summary[]> {
  override readonly name: string
  override readonly kept = { scope: 'thread', schema: summaries } as const
  readonly #model: ChatModel | string
  readonly #triggers: readonly SummarizationTrigger[]
  readonly #recent: RecentPolicy
  readonly #count: TokenCounter
  readonly #prompt: string
  readonly #summaryMessage: (summary: string) => ChatMessage
  readonly #tool: Tool | undefined = undefined

  constructor(options: SummarizationOptions) {
    super()
    requireOptions(options)
    this.name = options.name ?? 'SummarizationMiddleware'
    this.#model = options.model
    this.#triggers = [options.trigger].flat()
    this.#recent = options.recent
    this.#count = options.counter ?? approximateTokens
    this.#prompt = options.prompt ?? DEFAULT_SUMMARY_PROMPT
    this.#summaryMessage = options.summaryMessage ?? inUserWords
    if (!options.provideTool) return
    this.#tool = summarizeContext()
    this.wrapTool = (_args, next, ctx) => this.#answerTool(next, ctx)
  }

  override tools(): readonly Tool[] {
    return this.#tool === undefined ? [] : [this.#tool]
  }

  /** Whether a request is too long, and by which trigger. */
  shouldSummarize(request: Pick<ChatRequest, 'messages' | 'tools'>): SummarizationDecision {
    for (const trigger of this.#triggers) {
      const decision = trigger(request, this.#count)
      if (decision.summarize) return decision
    }
    return { summarize: false, reason: '' }
  }

  override async wrapModel(request: ChatRequest, next: NextOfModel, ctx: Ctx) {
    const messages = await this.#shortened(request, ctx)
    if (this.#tool !== undefined) ctx.scratch[this.name] = messages
    return messages === request.messages ? next() : next({ messages })
  }

  /** What is sent: with the summaries there are, and, where it is still too long, with a new one. */
  async #shortened(request: ChatRequest, ctx: Ctx): Promise<Messages> {
    const known = ctx.kept.value
    if (known.length === 0 && !this.shouldSummarize(request).summarize) return request.messages
    const received = fieldOf(ctx.state)
    const conversation = conversationOf(ctx.givenRequest.messages, received, fieldOf(ctx.storedState))
    const places = placesIn(request.messages, conversation)
    const standing = longest(known, conversation)
    const view = new View(request.messages, places, standing)
    if (!this.shouldSummarize({ ...request, messages: view.messages }).summarize) return view.messages
    const cut = this.#cut(conversation, view, standing?.count ?? 0)
    if (cut === undefined) return view.messages
    const summary: Summary = {
      count: cut,
      digest: digestOf(conversation.slice(0, cut) as unknown as Json),
      message: this.#messageOf(await this.#summarize(view.before(cut), ctx), conversation[0]),
    }
    ctx.kept.update((before) => bounded([...before, summary]))
    return new View(request.messages, places, summary).messages
  }

  /** Where the recent part begins: where the policy says, moved back so that calls and results stay together. */
  #cut(conversation: Messages, view: View, covered: number): number | undefined {
    const open = conversation.slice(covered)
    const standing = view.summary === undefined ? open : [view.summary.message, ...open]
    const at = this.#recent(standing, this.#count) - (standing.length - open.length)
    const allowed = cutsAt(conversation)
    let cut = Math.min(covered + Math.max(0, at), view.whole)
    while (cut > covered && !allowed(cut)) cut--
    return cut > covered ? cut : undefined
  }

  async #summarize(older: Messages, ctx: Pick<Ctx, 'callModel'>): Promise<string> {
    const { content } = await ctx.callModel(this.#model, {
      messages: [
        { role: 'system', content: this.#prompt },
        { role: 'user', content: transcriptOf(older) },
      ],
    })
    const summary = content.trim()
    if (summary !== '' && summary.length <= MAX_SUMMARY) return summary
    throw new SluiceError(
      'SUMMARY_UNUSABLE',
      `the model that summarizes gave a summary of ${summary.length} characters; it must have 1 to ${MAX_SUMMARY}.`,
      { middleware: this.name },
    )
  }

  #messageOf(summary: string, first: ChatMessage | undefined): ChatMessage {
    const message = this.#summaryMessage(summary)
    return first?.id === undefined ? message : { ...message, id: first.id }
  }

  /** The node is through: what was summarized is replaced in the state, unless others write it in this superstep. */
  override afterNode(ctx: NodeMiddlewareContext<unknown, unknown, readonly Summary[]>) {
    const known = ctx.kept.value
    if (known.length === 0 || ctx.superstepSize > 1 || !isObject(ctx.state)) return undefined
    const [stored, said] = [fieldOf(ctx.storedState), fieldOf(ctx.state) ?? []]
    if (!Array.isArray(stored) || !Array.isArray(said)) return undefined
    const conversation = reduceMessages(stored, said as Json) as unknown as Messages
    const standing = longest(known, conversation)
    if (standing === undefined) return undefined
    ctx.kept.update((before) => before.filter((summary) => !standsFor(summary, conversation)))
    const messages = replaceWith([standing.message, ...conversation.slice(standing.count)])
    return ctx.replace({ ...ctx.state, messages })
  }

  async #answerTool(
    next: NextOf<JsonObject, Json>,
    ctx: ToolMiddlewareContext<unknown, unknown, unknown>,
  ): Promise<WrapOutcome> {
    const outcome = await next()
    if (ctx.tool !== this.#tool || !outcome.ok) return outcome
    const sent = (ctx.scratch[this.name] ?? fieldOf(ctx.storedState) ?? []) as Messages
    return { ok: true, value: await this.#sumUp(sent, ctx) }
  }

  async #sumUp(messages: Messages, ctx: Pick<Ctx, 'callModel'>): Promise<SummarizationResult> {
    const allowed = cutsAt(messages)
    let cut = this.#recent(messages, this.#count)
    while (cut > 0 && !allowed(cut)) cut--
    return {
      summary: cut === 0 ? '' : await this.#summarize(messages.slice(0, cut), ctx),
      originalMessageCount: messages.length,
      summarizedMessageCount: cut,
      keptMessageCount: messages.length - cut,
      tokenCount: this.#count({ messages }),
      reason: cut === 0 ? 'no_older_messages' : 'requested',
    }
  }
}

/** What a model is sent of a request, with a summary in place of what it stands for. */
class View {
  readonly summary: Summary | undefined
  readonly #sent: Messages
  readonly #places: readonly number[]
  /** What is summarized stands from here … */
  readonly #from: number
  /** … to here. */
  readonly #to: number

  constructor(sent: Messages, places: readonly number[], summary: Summary | undefined) {
    this.#sent = sent
    this.#places = places
    this.summary = summary
    this.#from = beginOf(sent, places)
    this.#to = this.#end(summary?.count ?? 0)
  }

  get messages(): Messages {
    if (this.summary === undefined) return this.#sent
    return [...this.#sent.slice(0, this.#from), this.summary.message, ...this.#sent.slice(this.#to)]
  }

  /** Up to where the conversation is there in whole: what another middleware has left out is not summarized away. */
  get whole(): number {
    let next = this.summary?.count ?? 0
    for (const place of this.#places) {
      if (place === next) next++
    }
    return next
  }

  /** What is sent of the conversation before `cut`. */
  before(cut: number): Messages {
    const older = this.#sent.slice(this.#to, this.#end(cut))
    return this.summary === undefined ? older : [this.summary.message, ...older]
  }

  #end(count: number): number {
    let end = this.#from
    for (const [i, place] of this.#places.entries()) if (place !== -1 && place < count) end = i + 1
    // A result that was changed so that nobody knows it again, and whose call goes.
    while (end > this.#from && this.#places[end] === -1 && this.#sent[end]?.role === 'tool') end++
    return end
  }
}

/** Where the conversation begins in a request: after what was put before it. */
function beginOf(sent: Messages, places: readonly number[]): number {
  const first = places.findIndex((place) => place !== -1)
  if (places[first] === 0) return first
  let at = 0
  while (sent[at]?.role === 'system' && places[at] === -1) at++
  return at
}

const fieldOf = (state: unknown): unknown => (isObject(state) ? state.messages : undefined)

const standsFor = ({ count, digest }: Summary, conversation: Messages): boolean =>
  count <= conversation.length && digestOf(conversation.slice(0, count) as unknown as Json) === digest

/** The summary that stands for the most of a conversation. */
function longest(known: readonly Summary[], conversation: Messages): Summary | undefined {
  let found: Summary | undefined
  for (const summary of known) {
    if ((found === undefined || summary.count > found.count) && standsFor(summary, conversation)) found = summary
  }
  return found
}

/** The newest, as many as may be kept. */
function bounded(all: readonly Summary[]): readonly Summary[] {
  let from = 0
  while (from < all.length - 1 && JSON.stringify(all.slice(from)).length > MAX_KEPT) from++
  return all.slice(from)
}

/** What it gives is supplied by the middleware, after the policies have let it run. */
const summarizeContext = (): Tool =>
  tool('summarize_context', {
    description: 'Sums up the older part of this conversation. Nothing is changed by it.',
    input: readBy((value) => readMembers(value, [], 'the call')),
    parameters: { type: 'object', properties: {}, additionalProperties: false },
    idempotent: true,
    run: () => 'Nothing was summed up: the SummarizationMiddleware of this tool is not in the graph.',
  })

function requireOptions(options: SummarizationOptions): void {
  const what = 'SummarizationMiddleware'
  const { model, trigger, recent } = readMembers(options, OPTIONS, what)
  if (typeof model !== 'string' && !(isObject(model) && typeof model.chat === 'function')) {
    throw new TypeError(`${what}: model must be a model, or the name of one in the runtime.`)
  }
  const triggers = [trigger].flat()
  if (triggers.length === 0 || !triggers.every((each) => typeof each === 'function')) {
    throw new TypeError(`${what}: trigger must be tokenLimit(…), fixedTokens(…), messageCount(…), or a list of such.`)
  }
  if (typeof recent !== 'function') {
    throw new TypeError(`${what}: recent must be recentMessages(…) or recentTokens(…).`)
  }
}
