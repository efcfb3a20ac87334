import { ResponseAssembler } from '../../chat/assemble.ts'
import type { ChatRequest, ChatResponse } from '../../chat/chat.ts'
import type { ChatModel } from '../../chat/model.ts'
import { editRequest, readResponse } from '../../chat/read.ts'
import { SluiceError, showError } from '../../errors/error.ts'
import type { NodeRequest } from '../../graph/context.ts'
import { isObject, type Json, type JsonObject } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import { BlockGates, type StreamBlocks } from '../../seams/blocks.ts'
import { Call, type CallOptions, type SeamSpec } from '../../seams/call.ts'
import { typeOf } from '../../seams/hooks.ts'
import type { Subject } from '../../seams/subject.ts'
import { isThenable } from '../../seams/thenable.ts'
import { MAX_MODEL_ATTEMPTS } from '../limits.ts'
import type { Runtime } from '../runtime.ts'
import type { Task } from '../task.ts'
import { type Flown, UNFLOWN } from '../threads/flight.ts'
import { CallAsking } from './ask-call.ts'
import { AskingHere } from './ask-here.ts'
import type { CallSite } from './call-site.ts'
import type { Gates } from './gates.ts'

export interface ModelCallOptions {
  /** `false` sends the response as a whole even where somebody listens. */
  readonly stream?: boolean
  /** The agent's round that the call belongs to. */
  readonly round?: number
  /** Throws what is wrong with the request as it would be sent, after everybody has changed it. */
  readonly requires?: (request: ChatRequest) => void
}

/** A model call on its way: its parts leave at once, or are held until the policies have judged the response. */
export class ModelCall extends Call<Json> {
  declare readonly site: CallSite
  readonly model: ChatModel
  readonly signal: AbortSignal
  readonly streams: boolean
  readonly holds: boolean
  readonly blocks: readonly StreamBlocks[]
  requires: ModelCallOptions['requires']
  /** Tells its node that something happens. */
  alive: (() => void) | undefined
  held: string[] = []
  left = 0
  /** Keeps what has left so far, where there is a thread to keep it. */
  keep: ((said: string) => void) | undefined
  /** Who is asked on this trip, where a wrap named another model. */
  via: ChatModel | undefined
  /** What the model of the last trip answered. */
  raw: ChatResponse | undefined
  /** Counts whose parts may leave: those of the trip that is under way, until it is called back or settled. */
  leaving = 0
  #said = ''

  constructor(
    site: CallSite,
    subject: Subject,
    model: ChatModel,
    request: ChatRequest,
    {
      signal = site.signal,
      streams = false,
      gates = site.runtime.gates,
      ...rest
    }: { signal?: AbortSignal; streams?: boolean; gates?: Gates } & CallOptions = {},
  ) {
    super(site, subject, request as unknown as Json, { maxAttempts: MAX_MODEL_ATTEMPTS, ...rest })
    this.model = model
    this.signal = signal
    this.streams = streams && model.stream !== undefined
    this.holds = this.streams && gates.holdsStreams(subject)
    this.blocks = gates.streamBlocks
  }

  override askHere(): AskingHere | undefined {
    const task = this.maker as Task | undefined
    if (task === undefined) return undefined
    const about = (input: Json) => ({ model: (input as { model?: string }).model ?? this.model.model })
    return new AskingHere({ scope: task.scope, task, subject: this.subject, prefix: `${task.keyPrefix}:model`, about })
  }

  /** A trip begins: what left of one before it no longer counts. */
  setOut(via: ChatModel | undefined): void {
    this.retract()
    this.raw = undefined
    this.via = via
    if (via === undefined) return
    this.input = own({ ...(this.input as JsonObject), model: via.model })
  }

  /** Who is asked: the model that the request names, where the runtime knows it by that name. */
  get asked(): ChatModel {
    const model = this.via ?? this.model
    const { model: name } = this.input as unknown as ChatRequest
    return name === model.model ? model : (this.site.runtime.models(name) ?? model)
  }

  /** @param of what `leaving` was when its trip set out; a part of any other is dropped. */
  part(text: string, of: number): void {
    if (of !== this.leaving) return
    if (this.holds) {
      this.held.push(text)
      return
    }
    this.#emit(text, 1)
    if (this.keep === undefined) return
    this.#said += text
    this.keep(this.#said)
  }

  /** What leaves once the response is settled: the held parts if it is this trip's own, else the response as one part. */
  release(response: ChatResponse): void {
    if (this.substituted !== undefined || (this.holds && response !== this.raw)) {
      this.retract()
      this.site.emit({ type: 'token', ...this.#at, text: response.content, substituted: true })
    } else for (const text of this.held) this.#emit(text, 0)
    this.leaving++
    this.held = []
    this.left = 0
  }

  /** Tells whoever listens that the model is asked, and what that cost. */
  async watched(ask: () => Promise<ChatResponse>): Promise<ChatResponse> {
    const { model } = this.input as unknown as ChatRequest
    const at = { ...this.#at, model }
    this.site.emit({ type: 'model_call', ...at })
    try {
      const response = await ask()
      const { usage, finish_reason: finishReason } = response
      this.site.emit({ type: 'model_result', ...at, ...(usage === undefined ? {} : { usage }), finishReason })
      return response
    } catch (error) {
      this.site.emit({ type: 'model_result', ...at, error: showError(error) })
      throw error
    }
  }

  /** Parts that have left and no longer count are called back. */
  retract(): void {
    if (this.left > 0) this.site.emit({ type: 'retracted', ...this.#at, tokens: this.left })
    this.leaving++
    this.left = 0
    this.held = []
    this.#said = ''
  }

  /** One literal for each token: there are many, and a copy for each would be felt. */
  #emit(text: string, counts: number): void {
    this.left += counts
    const { nodeName = '', nodeType = '' } = this.subject
    this.site.sink?.push({ type: 'token', nodeName, nodeType, text, path: this.site.path })
  }

  get #at(): { nodeName: string; nodeType: string } {
    return { nodeName: this.subject.nodeName ?? '', nodeType: this.subject.nodeType ?? '' }
  }
}

export const modelCallSpec: SeamSpec<Json, ChatResponse> = {
  seam: 'modelCall',
  edits: true,
  readOptions: ({ signal, model }, call) => ({
    signal,
    model: model === undefined ? undefined : otherModel(model, call as ModelCall),
  }),
  setOut: (call, options) => (call as ModelCall).setOut(options?.model as ChatModel | undefined),
  perform: async (call) => {
    const { tripSignal } = call
    const asked = call as ModelCall
    asked.requires?.(asked.input as unknown as ChatRequest)
    const signal = tripSignal === undefined ? asked.signal : AbortSignal.any([asked.signal, tripSignal])
    const response = asked.site.sink === null ? await ask(asked, signal) : await asked.watched(() => ask(asked, signal))
    asked.raw = response
    return response
  },
  readInput: (value, call, what) => editRequest(call.input as unknown as ChatRequest, value, what) as unknown as Json,
  readValue: (value, _call, what) => readResponse(value, what),
  show: (response) => response as unknown as Json,
}

/** Who a wrap names to be asked instead. */
function otherModel(model: unknown, { site }: ModelCall): ChatModel {
  if (typeof model === 'string') return modelNamed(site.runtime, model)
  if (isObject(model) && typeof model.chat === 'function') return model as unknown as ChatModel
  throw new TypeError(`next was given ${typeOf(model)} as model; give a model, or the name of one in the runtime`)
}

/** @throws SluiceError `MODEL_UNKNOWN` for one that the runtime does not have. */
export function modelNamed(runtime: Pick<Runtime, 'models'>, name: string): ChatModel {
  const model = runtime.models(name)
  if (model !== undefined) return model
  throw new SluiceError('MODEL_UNKNOWN', `there is no model "${name}" in the runtime.`, { model: name })
}

async function ask(call: ModelCall, signal: AbortSignal): Promise<ChatResponse> {
  const request = call.input as unknown as ChatRequest
  const what = `the response of model "${request.model}"`
  const options = { signal }
  const { asked, blocks, leaving } = call
  const leave = (text: string) => {
    if (call.streams && !signal.aborted) call.part(text, leaving)
  }
  const gates = blocks.length === 0 ? undefined : new BlockGates(blocks, leave)
  if (!call.streams || asked.stream === undefined) {
    const response = readResponse(await asked.chat(request, options), what)
    if (gates === undefined) return response
    await gates.add(response.content)
    return judged(response, gates)
  }
  const assembler = new ResponseAssembler()
  for await (const chunk of asked.stream(request, options)) {
    // What came so far is no response.
    if (call.over || signal.aborted) throw signal.reason
    assembler.add(chunk)
    if (chunk.content) {
      if (gates === undefined) leave(chunk.content)
      else await gates.add(chunk.content)
    }
    call.alive?.()
    const room = call.site.sink?.room()
    if (room !== undefined) await room
  }
  const response = readResponse(assembler.response(), what)
  return gates === undefined ? response : judged(response, gates)
}

/** The response with the text as it was judged. */
async function judged(response: ChatResponse, gates: BlockGates): Promise<ChatResponse> {
  await gates.end()
  return gates.text === response.content
    ? response
    : (own({ ...response, content: gates.text }) as unknown as ChatResponse)
}

/** A request as it is given to the gate: what the caller left out stands as the model has it. */
export function requestTo(model: ChatModel, request: NodeRequest, what: string): ChatRequest {
  const asked = own(request, what) as unknown as NodeRequest
  return own({ ...model.defaults, ...asked, model: asked.model ?? model.model }) as unknown as ChatRequest
}

/** Asks a model from a node: journaled, judged by the policies, streamed to whoever listens. */
export async function callModel(
  task: Task,
  model: ChatModel,
  request: NodeRequest,
  { stream = true, round, requires }: ModelCallOptions = {},
  flown: Flown = UNFLOWN,
): Promise<ChatResponse> {
  const { scope, log } = task
  const given = requestTo(model, request, `the request of node "${task.node.name}"`)
  const entered = log?.journal.enter('model', given.model, given as unknown as Json)
  const entry = isThenable(entered) ? await entered : entered
  const { subject } = task
  const call = new ModelCall(scope, subject, model, given, {
    signal: task.signal,
    streams: stream && scope.sink !== null && scope.runtime.streams && scope.sink.wants('token'),
    entry,
    asking:
      log &&
      new CallAsking({
        scope,
        task,
        log,
        subject,
        entry,
        about: (input) => ({ model: (input as { model?: string } | null)?.model ?? given.model }),
        waits: flown.waits,
      }),
    nestedIn: scope.nestedIn,
    round,
    maker: task,
    gates: scope.gates,
  })
  call.requires = requires
  call.alive = task.node.idleTimeoutMs === undefined ? undefined : () => task.active()
  if (log !== undefined && entry !== undefined && call.streams) call.keep = log.keeperOf(entry)
  const { modelCall } = scope.gates
  try {
    if (!call.streams) return await modelCall(call)
    const response = await task.streaming(call, () => modelCall(call))
    call.release(response)
    return response
  } catch (error) {
    call.retract()
    throw error
  }
}
