import { isObject, type Json, type RunEvent } from '@sluice/core'
import type { PutAsk } from '@sluice/host'
import { frameText } from '../../http/sse.ts'
import { answerText, type Ported } from '../common/answer-text.ts'
import { asksOf, callOf, questionText } from '../common/asks.ts'
import { consentTo } from '../common/consent.ts'
import { isOutermost, placeOf, type Text, Texts, textOf } from '../common/texts.ts'
import { Usages } from '../common/usage.ts'
import type { Rendering } from '../protocol.ts'

/** The version of AG-UI that is spoken here. */
const VERSION = '1.0'

interface AgUiEvent {
  readonly type: string
  readonly [field: string]: unknown
}

export interface AgUiRun {
  /** Of this server. */
  readonly run: string
  /** As the client names them. */
  readonly threadId: string
  readonly runId: string
  readonly flow: Ported
  /** Calls that the client has been told of before. */
  readonly calls?: ReadonlySet<string>
  /** What the client holds. */
  readonly state?: unknown
}

/** Renders a run for a client of AG-UI. */
export function agUiRendering(run: AgUiRun): Rendering {
  const rendering = new AgUi(run)
  const framed = (events: Iterable<AgUiEvent>) => [...events].map((event) => frameText({ data: JSON.stringify(event) }))
  return { event: (event) => framed(rendering.event(event)), finish: () => framed(rendering.finish()) }
}

class AgUi {
  readonly #run: AgUiRun
  readonly #texts: Texts
  readonly #usages = new Usages()
  readonly #calls: Set<string>
  /** Names of open steps, by the place of their node; no two have one name. */
  readonly #steps = new Map<string, string[]>()
  #state: Readonly<Record<string, unknown>>
  #over = false

  constructor(run: AgUiRun) {
    this.#run = run
    this.#texts = new Texts(`${run.run}:`)
    this.#calls = new Set(run.calls)
    this.#state = isObject(run.state) ? run.state : {}
  }

  *event(event: RunEvent): Generator<AgUiEvent> {
    switch (event.type) {
      case 'run_start':
        if (isOutermost(event)) yield this.#started()
        return
      case 'node_start':
        return yield* this.#stepStarted(placeOf(event))
      case 'node_complete':
        yield* this.#stepFinished(placeOf(event))
        return yield* isOutermost(event) ? this.#snapshot(event.output) : []
      case 'node_error':
        yield* this.#stepFinished(placeOf(event))
        return yield custom(event)
      case 'model_call':
        return yield* this.#endText(placeOf(event))
      case 'model_result':
        return this.#usages.note(event)
      case 'tool_call':
        yield* this.#endText(placeOf(event))
        return yield* this.#call(event.toolCallId, event.toolName, event.toolArgs)
      case 'tool_result':
        return yield* this.#result(event)
      case 'token':
        return yield* this.#token(event)
      case 'retracted':
        return yield* this.#retracted(event)
      case 'update':
      case 'values':
        return
      case 'run_end':
        if (isOutermost(event)) yield* this.#end(event)
        return
      default:
        yield custom(event)
    }
  }

  *finish(): Generator<AgUiEvent> {
    if (!this.#over) yield { type: 'RUN_ERROR', message: 'the events of this run broke off.', code: 'RUN_LOST' }
  }

  #started(): AgUiEvent {
    const { threadId, runId, run } = this.#run
    return { type: 'RUN_STARTED', threadId, runId, protocolVersion: VERSION, metadata: { run } }
  }

  *#stepStarted(place: string): Generator<AgUiEvent> {
    const open = this.#steps.get(place) ?? []
    const stepName = open.length === 0 ? place : `${place}#${open.length + 1}`
    this.#steps.set(place, [...open, stepName])
    yield { type: 'STEP_STARTED', stepName }
  }

  *#stepFinished(place: string): Generator<AgUiEvent> {
    yield* this.#endText(place)
    const stepName = this.#steps.get(place)?.pop()
    if (stepName !== undefined) yield { type: 'STEP_FINISHED', stepName }
  }

  *#snapshot(output: Readonly<Record<string, unknown>>): Generator<AgUiEvent> {
    const changed = Object.entries(output).some(
      ([name, value]) => JSON.stringify(this.#state[name]) !== JSON.stringify(value),
    )
    if (!changed) return
    this.#state = { ...this.#state, ...output }
    yield { type: 'STATE_SNAPSHOT', snapshot: this.#state }
  }

  *#token(event: RunEvent & { type: 'token' }): Generator<AgUiEvent> {
    if (event.text === '') return
    if (event.substituted) yield* this.#endText(placeOf(event))
    const text = this.#texts.at(placeOf(event))
    if (text.parts.length === 0) {
      const metadata = event.substituted ? { metadata: { substituted: true } } : {}
      yield { type: 'TEXT_MESSAGE_START', messageId: text.id, role: 'assistant', ...metadata }
    }
    text.parts.push(event.text)
    yield { type: 'TEXT_MESSAGE_CONTENT', messageId: text.id, delta: event.text }
  }

  /** A message cannot be taken back: it ends, what is left of it is told, and what comes next is another message. */
  *#retracted(event: RunEvent & { type: 'retracted' }): Generator<AgUiEvent> {
    yield* this.#endText(placeOf(event))
    const messages = this.#texts
      .retract(placeOf(event), event.tokens)
      .map((text) => ({ messageId: text.id, content: textOf(text) }))
    yield custom({ ...event, messages })
  }

  *#endText(place: string): Generator<AgUiEvent> {
    const text = this.#texts.end(place)
    if (text !== undefined) yield ended(text)
  }

  *#call(toolCallId: string, toolCallName: string, args?: Json): Generator<AgUiEvent> {
    if (this.#calls.has(toolCallId)) return
    this.#calls.add(toolCallId)
    yield { type: 'TOOL_CALL_START', toolCallId, toolCallName }
    if (args !== undefined) yield { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(args) }
    yield { type: 'TOOL_CALL_END', toolCallId }
  }

  *#result({
    toolCallId,
    toolName,
    toolResult,
    error,
    refused,
  }: RunEvent & { type: 'tool_result' }): Generator<AgUiEvent> {
    // A call that was refused before it ran has told nobody its arguments.
    yield* this.#call(toolCallId, toolName)
    const messageId = `${this.#run.run}:${toolCallId}`
    const result = { type: 'TOOL_CALL_RESULT', messageId, toolCallId, role: 'tool' }
    if (refused !== undefined) yield { ...result, content: `Refused: ${refused}`, metadata: { refused } }
    else if (error !== undefined) yield { ...result, content: `Failed: ${error.message}`, metadata: { error } }
    else yield { ...result, content: typeof toolResult === 'string' ? toolResult : JSON.stringify(toolResult ?? null) }
  }

  *#end(event: RunEvent & { type: 'run_end' }): Generator<AgUiEvent> {
    this.#over = true
    for (const text of this.#texts.endAll()) yield ended(text)
    const { status, result, error } = event
    const asks = status === 'paused' ? asksOf(event) : []
    const answer = status === 'completed' ? answerText(this.#run.flow, result) : undefined
    if (answer !== undefined && answer !== '' && !this.#texts.hasSaid(answer)) yield* this.#say(answer)
    const interrupts: object[] = []
    for (const ask of asks) interrupts.push(yield* this.#interrupt(ask))
    for (const stepName of [...this.#steps.values()].flat()) yield { type: 'STEP_FINISHED', stepName }
    const usage = this.#usage()
    if (status === 'failed') {
      const { message = 'the run failed.', code } = error ?? {}
      yield { type: 'RUN_ERROR', message, ...(code === undefined ? {} : { code }), ...usage }
      return
    }
    const { threadId, runId } = this.#run
    const finished = { type: 'RUN_FINISHED', threadId, runId, ...usage }
    if (status === 'paused') yield { ...finished, outcome: { type: 'interrupt', interrupts } }
    else if (status === 'cancelled') yield { ...finished, outcome: { type: 'cancelled' } }
    else yield { ...finished, result: result ?? null, outcome: { type: 'success' } }
  }

  *#say(answer: string): Generator<AgUiEvent> {
    const text = this.#texts.at('')
    yield { type: 'TEXT_MESSAGE_START', messageId: text.id, role: 'assistant' }
    yield { type: 'TEXT_MESSAGE_CONTENT', messageId: text.id, delta: answer }
    yield ended(text)
  }

  *#interrupt(ask: PutAsk): Generator<AgUiEvent, object> {
    const { id, key, askedBy, nodeName, payload, schema, expiresAt } = ask
    const call = callOf(ask)
    if (call !== undefined) yield* this.#call(call.id, call.tool, call.args)
    const isYesOrNo = consentTo(ask, true) !== undefined
    return {
      id,
      reason: call !== undefined ? 'tool_call' : isYesOrNo ? 'confirmation' : 'input_required',
      message: questionText(ask),
      ...(call === undefined ? {} : { toolCallId: call.id }),
      ...(schema === undefined ? {} : { responseSchema: schema }),
      ...(expiresAt === undefined ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
      metadata: { key, askedBy, nodeName, payload },
    }
  }

  #usage(): { usage?: readonly object[] } {
    const each = this.#usages.each.map((spent) => ({ ...spent, totalTokens: spent.inputTokens + spent.outputTokens }))
    return each.length === 0 ? {} : { usage: each }
  }
}

const ended = ({ id }: Text): AgUiEvent => ({ type: 'TEXT_MESSAGE_END', messageId: id })

/** What AG-UI has no word for keeps ours. */
const custom = ({ type, ...value }: RunEvent & { readonly messages?: unknown }): AgUiEvent => ({
  type: 'CUSTOM',
  name: type,
  value,
})
