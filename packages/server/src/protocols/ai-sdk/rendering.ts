import type { Json, JsonObject, RunEvent } from '@sluice/core'
import type { PutAsk } from '@sluice/host'
import { frameText } from '../../http/sse.ts'
import { answerText, type Ported } from '../common/answer-text.ts'
import { asksOf, callOf, questionText } from '../common/asks.ts'
import { consentTo } from '../common/consent.ts'
import { isOutermost, placeOf, type Text, Texts, textOf } from '../common/texts.ts'
import type { Rendering } from '../protocol.ts'

interface Chunk {
  readonly type: string
  readonly [field: string]: unknown
}

/** An approval of the client's, and the call that its message has it at. */
export interface Approval {
  readonly toolCallId: string
  /** Absent while nobody has said. */
  readonly approved?: boolean
}

export interface AiSdkRun {
  /** Of this server. */
  readonly run: string
  readonly thread: string
  readonly flow: Ported
  /** The message that goes on; a new one without it. */
  readonly messageId?: string
  /** Calls that the client has been told of before. */
  readonly calls?: ReadonlySet<string>
  /** What it was asked, by id of the question. */
  readonly approvals?: ReadonlyMap<string, Approval>
}

const DONE = frameText({ data: '[DONE]' })

/** Renders a run as a UI message stream of the AI SDK. */
export function aiSdkRendering(run: AiSdkRun): Rendering {
  const rendering = new AiSdk(run)
  const framed = (chunks: Iterable<Chunk>) => [...chunks].map((chunk) => frameText({ data: JSON.stringify(chunk) }))
  return { event: (event) => framed(rendering.event(event)), finish: () => [...framed(rendering.finish()), DONE] }
}

/** The server runs every call, so a client has none to run. */
const BY_SERVER = { dynamic: true, providerExecuted: true }

class AiSdk {
  readonly #run: AiSdkRun
  readonly #texts: Texts
  readonly #calls: Set<string>
  readonly #approvals: ReadonlyMap<string, Approval>
  /** Calls that wait for what comes of an answer. */
  readonly #answered: Map<string, boolean>
  #over = false

  constructor(run: AiSdkRun) {
    this.#run = run
    this.#texts = new Texts(`${run.run}:`)
    this.#calls = new Set(run.calls)
    this.#approvals = run.approvals ?? new Map()
    this.#answered = new Map(
      [...this.#approvals.values()].flatMap(({ toolCallId, approved }) =>
        approved === undefined ? [] : [[toolCallId, approved] as const],
      ),
    )
  }

  *event(event: RunEvent): Generator<Chunk> {
    switch (event.type) {
      case 'run_start':
        if (isOutermost(event)) yield* this.#started()
        return
      case 'node_start':
        return yield nodeData(event, 'running')
      case 'node_complete':
        yield* this.#endText(placeOf(event))
        return yield nodeData(event, 'completed')
      case 'node_error':
        yield* this.#endText(placeOf(event))
        return yield { ...nodeData(event, 'failed'), data: { ...dataOf(event), status: 'failed' } }
      case 'model_call':
        return yield* this.#endText(placeOf(event))
      case 'tool_call':
        yield* this.#endText(placeOf(event))
        return yield* this.#call(event.toolCallId, event.toolName, event.toolArgs)
      case 'tool_result':
        return yield* this.#result(event)
      case 'token':
        return yield* this.#token(event)
      case 'retracted':
        return yield* this.#retracted(event)
      case 'decision':
        return yield { type: 'data-decision', data: dataOf(event) }
      case 'warning':
      case 'custom':
        return yield { type: `data-${event.type}`, data: dataOf(event) }
      case 'plugin_log':
        return yield { type: 'data-log', data: dataOf(event), transient: true }
      case 'model_result':
      case 'update':
      case 'values':
        return
      case 'run_end':
        if (isOutermost(event)) yield* this.#end(event)
        return
      default:
        yield { type: 'data-plugin', data: { type: event.type, ...dataOf(event) } }
    }
  }

  *finish(): Generator<Chunk> {
    if (!this.#over) yield { type: 'error', errorText: 'the events of this run broke off.' }
  }

  *#started(): Generator<Chunk> {
    const { run, thread, messageId = run } = this.#run
    yield { type: 'start', messageId }
    yield { type: 'data-run', data: { run, thread }, transient: true }
  }

  *#token(event: RunEvent & { type: 'token' }): Generator<Chunk> {
    if (event.text === '') return
    if (event.substituted) yield* this.#endText(placeOf(event))
    const text = this.#texts.at(placeOf(event))
    if (text.parts.length === 0) {
      const metadata = event.substituted ? { providerMetadata: { sluice: { substituted: true } } } : {}
      yield { type: 'text-start', id: text.id, ...metadata }
    }
    text.parts.push(event.text)
    yield { type: 'text-delta', id: text.id, delta: event.text }
  }

  /** A part cannot be taken back: it ends, what is left of it is told, and what comes next is another part. */
  *#retracted(event: RunEvent & { type: 'retracted' }): Generator<Chunk> {
    yield* this.#endText(placeOf(event))
    const texts = this.#texts.retract(placeOf(event), event.tokens)
    const parts = texts.map((text) => ({ id: text.id, text: textOf(text) }))
    yield { type: 'data-retracted', data: { ...dataOf(event), parts } }
  }

  *#endText(place: string): Generator<Chunk> {
    const text = this.#texts.end(place)
    if (text !== undefined) yield ended(text)
  }

  *#call(toolCallId: string, toolName: string, input: Json): Generator<Chunk> {
    if (this.#calls.has(toolCallId)) return
    this.#calls.add(toolCallId)
    yield { type: 'tool-input-available', toolCallId, toolName, input, ...BY_SERVER }
  }

  *#result({ toolCallId, toolName, toolResult, error, refused }: RunEvent & { type: 'tool_result' }): Generator<Chunk> {
    // A call that was refused before it ran has told nobody its arguments.
    yield* this.#call(toolCallId, toolName, {})
    const denied = this.#answered.get(toolCallId) === false
    this.#answered.delete(toolCallId)
    if (refused === undefined && error === undefined)
      yield { type: 'tool-output-available', toolCallId, output: toolResult ?? null, ...BY_SERVER }
    else if (denied) yield { type: 'tool-output-denied', toolCallId }
    else {
      const errorText = refused === undefined ? `${error?.message}` : `Refused: ${refused}`
      yield { type: 'tool-output-error', toolCallId, errorText, ...BY_SERVER }
    }
  }

  *#end(event: RunEvent & { type: 'run_end' }): Generator<Chunk> {
    this.#over = true
    for (const text of this.#texts.endAll()) yield ended(text)
    const { status, result, error } = event
    const asks = status === 'paused' ? asksOf(event) : []
    for (const ask of asks) yield* this.#ask(ask)
    yield* this.#settle()
    if (status === 'failed') yield { type: 'error', errorText: error?.message ?? 'the run failed.' }
    else if (status === 'cancelled') yield { type: 'abort', reason: error?.message ?? 'the run was cancelled.' }
    else if (status === 'paused') yield { type: 'finish', finishReason: 'tool-calls' }
    else {
      yield* this.#say(result)
      yield { type: 'finish', finishReason: 'stop' }
    }
  }

  *#say(result: Json | undefined): Generator<Chunk> {
    const answer = answerText(this.#run.flow, result)
    if (answer === undefined) yield { type: 'data-result', data: result ?? null }
    else if (answer !== '' && !this.#texts.hasSaid(answer)) {
      const text = this.#texts.at('')
      yield { type: 'text-start', id: text.id }
      yield { type: 'text-delta', id: text.id, delta: answer }
      yield ended(text)
    }
  }

  /** An approval belongs to a call; a question about none is shown as one. What is not answered by yes or no is data. */
  *#ask(ask: PutAsk): Generator<Chunk> {
    const { id, key, askedBy, nodeName, payload, schema, expiresAt } = ask
    const call = callOf(ask)
    const toolCallId = this.#approvals.get(id)?.toolCallId ?? call?.id ?? `ask-${id}`
    this.#answered.delete(toolCallId)
    const isYesOrNo = consentTo(ask, true) !== undefined
    const rest = { ...(schema === undefined ? {} : { schema }), ...(expiresAt === undefined ? {} : { expiresAt }) }
    const data = { id, key, askedBy, nodeName, message: questionText(ask), payload, isYesOrNo, ...rest }
    yield { type: 'data-ask', id, data }
    if (!isYesOrNo) return
    yield* this.#call(toolCallId, call?.tool ?? 'ask', call?.args ?? (payload as Json))
    yield { type: 'tool-approval-request', approvalId: id, toolCallId }
  }

  /** Whatever was approved or denied must not stay open in the client: it would send its answer again. */
  *#settle(): Generator<Chunk> {
    for (const [toolCallId, approved] of this.#answered) {
      if (approved) yield { type: 'tool-output-available', toolCallId, output: { approved }, ...BY_SERVER }
      else yield { type: 'tool-output-denied', toolCallId }
    }
  }
}

const ended = ({ id }: Text): Chunk => ({ type: 'text-end', id })

const dataOf = ({ type, ...data }: RunEvent): JsonObject => data as unknown as JsonObject

const nodeData = (event: RunEvent & { nodeName: string; nodeType: string }, status: string): Chunk => ({
  type: 'data-node',
  data: { node: placeOf(event), nodeType: event.nodeType, status },
  transient: true,
})
