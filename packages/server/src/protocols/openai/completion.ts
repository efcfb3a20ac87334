import type { JsonObject, RunEvent } from '@sluice/core'
import type { CheckedFlow } from '@sluice/flow'
import type { PutAsk, RunEnding, RunEntry } from '@sluice/host'
import { frameText } from '../../http/sse.ts'
import type { Parts } from '../../parts.ts'
import { answerText } from '../common/answer-text.ts'
import { asksOf, questionText } from '../common/asks.ts'
import { isOutermost } from '../common/texts.ts'
import { Usages } from '../common/usage.ts'
import type { Rendering } from '../protocol.ts'

export interface Completed {
  readonly run: Pick<RunEntry, 'id' | 'thread' | 'at'>
  readonly flow: CheckedFlow
  /** The flow's name. */
  readonly model: string
}

const headOf = ({ run, model }: Completed, object: string) => ({
  id: `chatcmpl-${run.id}`,
  object,
  created: Math.floor(run.at / 1_000),
  model,
})

/** What a run that did not fail says: its answer, or which questions it waits for. */
function contentOf(flow: CheckedFlow, { result, asks }: Pick<RunEnding, 'result' | 'asks'>): string {
  if (asks === undefined) return answerText(flow, result) ?? JSON.stringify(result ?? null)
  const questions = asks.map((ask) => `- ${questionText(ask)} (ask ${ask.id})`)
  return ['This run waits for an answer before it goes on:', ...questions].join('\n')
}

const askView = ({ id, key, askedBy, nodeName, payload, schema, expiresAt }: PutAsk) => ({
  id,
  key,
  askedBy,
  nodeName,
  payload,
  ...(schema === undefined ? {} : { schema }),
  ...(expiresAt === undefined ? {} : { expiresAt }),
})

/** What OpenAI has no field for. */
function extension({ id, thread }: Completed['run'], { status, asks, warnings, decisions }: RunEnding) {
  return {
    run: id,
    thread,
    status,
    ...(asks === undefined ? {} : { asks: asks.map(askView) }),
    ...(warnings.length === 0 ? {} : { warnings }),
    ...(decisions.length === 0 ? {} : { decisions }),
  }
}

function usageOf(usages: Usages) {
  const { inputTokens, outputTokens } = usages.total
  return { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: inputTokens + outputTokens }
}

/** A run that completed or paused, as a whole. */
export function completion(completed: Completed, ending: RunEnding, usages: Usages): JsonObject {
  const message = { role: 'assistant', content: contentOf(completed.flow, ending), refusal: null }
  return {
    ...headOf(completed, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
    usage: usageOf(usages),
    sluice: extension(completed.run, ending),
  } as unknown as JsonObject
}

/**
 * The nodes whose text is the flow's answer: models and agents that the end takes its only output from, if all that it takes it from
 * are such.
 */
function answeringNodes({ nodes, outputs, openOutputs, dataEdges }: CheckedFlow): ReadonlySet<string> {
  const [output, ...others] = outputs
  if (output === undefined || others.length > 0 || openOutputs || output.type.kind !== 'string') return new Set()
  const { title } = output
  const ends = new Set(nodes.filter(({ type }) => type === 'EndNode').map(({ name }) => name))
  const inner = nodes.filter(({ type }) => type !== 'EndNode')
  const sources =
    dataEdges === undefined
      ? inner.filter((node) => node.outputs.some((each) => each.title === title))
      : inner.filter(({ name }) =>
          dataEdges.some((edge) => edge.source === name && ends.has(edge.destination) && edge.input === title),
        )
  const speak = sources.every(
    ({ type, outputs: own }) => (type === 'LlmNode' || type === 'AgentNode') && own.length === 1,
  )
  return new Set(speak ? sources.map(({ name }) => name) : [])
}

/** Whether a policy may take back what a model has said: then the answer is sent when it stands. */
export const mayRetract = ({ runtime }: Pick<Parts, 'runtime'>): boolean =>
  runtime.current.gates.policies.some(
    (policy) =>
      (policy.mode ?? 'enforce') === 'enforce' &&
      (['modelCall', 'node', 'nodeError'] as const).some((seam) => policy.subscribes(seam, 'after')),
  )

interface StreamOptions {
  readonly includeUsage: boolean
  /** Whether nothing of the answer leaves before all of it stands. */
  readonly holds: boolean
}

const DONE = frameText({ data: '[DONE]' })
const framed = (data: object) => frameText({ data: JSON.stringify(data) })

/** A run as a stream of chunks. */
export function completionStream(completed: Completed, options: StreamOptions): Rendering {
  const stream = new CompletionStream(completed, options)
  return {
    event: (event) => [...stream.event(event)].map(framed),
    finish: () => [...[...stream.finish()].map(framed), DONE],
  }
}

class CompletionStream {
  readonly #completed: Completed
  readonly #options: StreamOptions
  readonly #answering: ReadonlySet<string>
  readonly #usages = new Usages()
  readonly #told = { warnings: [] as JsonObject[], decisions: [] as JsonObject[] }
  /** All that was sent, and of that what came since the last call of a tool. */
  #said = ''
  #last = ''
  #over = false

  constructor(completed: Completed, options: StreamOptions) {
    this.#completed = completed
    this.#options = options
    this.#answering = options.holds ? new Set() : answeringNodes(completed.flow)
  }

  *event(event: RunEvent): Generator<object> {
    if (this.#over) return
    switch (event.type) {
      case 'run_start':
        if (isOutermost(event)) yield this.#chunk({ role: 'assistant', content: '' })
        return
      case 'token':
        if (this.#speaks(event)) yield* this.#say(event.text)
        return
      case 'tool_call':
        if (this.#speaks(event)) this.#last = ''
        return
      case 'retracted':
        if (this.#speaks(event)) yield* this.#fail('what was said of this answer no longer holds.', 'text_retracted')
        return
      case 'model_result':
        return this.#usages.note(event)
      case 'warning':
      case 'decision': {
        const { type, ...said } = event
        this.#told[`${type}s`].push(said as unknown as JsonObject)
        return
      }
      case 'run_end':
        if (isOutermost(event)) yield* this.#end(event)
    }
  }

  *finish(): Generator<object> {
    if (!this.#over) yield* this.#fail('the events of this run broke off.', 'RUN_LOST')
  }

  #speaks(event: RunEvent & { readonly nodeName: string }): boolean {
    return isOutermost(event) && this.#answering.has(event.nodeName)
  }

  *#say(text: string): Generator<object> {
    if (text === '') return
    const content = this.#last === '' && this.#said !== '' ? `\n\n${text}` : text
    this.#said += content
    this.#last += text
    yield this.#chunk({ content })
  }

  *#end(event: RunEvent & { type: 'run_end' }): Generator<object> {
    const { status, result, error } = event
    if (status === 'failed' || status === 'cancelled') return yield* this.#fail(error?.message ?? status, error?.code)
    this.#over = true
    const asks = status === 'paused' ? { asks: asksOf(event) } : {}
    const ending: RunEnding = { status, ...(result === undefined ? {} : { result }), ...asks, ...this.#told }
    yield* this.#complete(contentOf(this.#completed.flow, ending))
    yield { ...this.#chunk({}, 'stop'), sluice: extension(this.#completed.run, ending) }
    if (this.#options.includeUsage)
      yield { ...headOf(this.#completed, 'chat.completion.chunk'), choices: [], usage: usageOf(this.#usages) }
  }

  /** What is still missing of the answer. */
  *#complete(answer: string): Generator<object> {
    if (this.#last.endsWith(answer)) return
    if (answer.startsWith(this.#last)) return yield* this.#say(answer.slice(this.#last.length))
    this.#last = ''
    yield* this.#say(answer)
  }

  *#fail(message: string, code?: string): Generator<object> {
    this.#over = true
    yield { error: { message, type: 'server_error', param: null, code: code ?? null } }
  }

  #chunk(delta: object, finish: 'stop' | null = null) {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }]
    return { ...headOf(this.#completed, 'chat.completion.chunk'), choices }
  }
}
