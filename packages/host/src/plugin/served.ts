import { isObject, type JsonObject, type LogLevel, messageOf, readMessages, showError } from '@sluice/core'
import { CAPABILITIES, FAULT, isTooLong, MAX_LINE_BYTES, type WireError } from '@sluice/plugin/wire'
import type { Asker, ModelQuestion, Serving } from './call.ts'
import type { Params } from './message.ts'

/** Requests of a plugin that are served at a time inside one of its calls. */
const MAX_ASKED = 32

/** Why a plugin's request is refused, as it is told. */
class Refusal extends Error {
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Serves what a plugin asks for inside a call: `runTool`, `callModel`, `emitEvent`, `log`, `partial`, `extend`.
 *
 * @param call the call it named, if that is being served.
 * @param granted the capabilities that its manifest requested.
 * @returns what to answer, or a promise of it.
 * @throws an error that {@link faultOf} makes an answer of.
 */
export function serveAsked(
  method: string,
  params: Params,
  call: Serving | undefined,
  granted: readonly string[],
): unknown {
  const serve = Object.hasOwn(SERVICES, method) ? SERVICES[method as Service] : undefined
  if (serve === undefined) {
    throw new Refusal(FAULT.noMethod, `there is no "${method}"; a plugin may ask: ${Object.keys(SERVICES).join(', ')}`)
  }
  if (isCapability(method) && !granted.includes(method)) {
    throw new Refusal(
      FAULT.notGranted,
      `${method} was not requested; add "${method}" to "capabilities" in the manifest`,
    )
  }
  if (call === undefined) throw new Refusal(FAULT.noCall, unattributed(method, params.call))
  if (call.asker[method as Service] === undefined) {
    throw new Refusal(FAULT.noCall, `this call offers no ${method}`)
  }
  return serve(call.asker as Required<Asker>, params, call)
}

const isCapability = (method: string) => (CAPABILITIES as readonly string[]).includes(method)

function unattributed(method: string, call: unknown): string {
  const what = method === 'runTool' ? 'a tool call' : method
  if (call === undefined) return `${what} must name the call it was made inside: params.call is the id of that request`
  return `${what} must name the call it was made inside; ${JSON.stringify(call)} is not being served`
}

type Service = Exclude<keyof Asker, 'hold' | 'release'>

const SERVICES: { readonly [S in Service]: (asker: Required<Asker>, params: Params, call: Serving) => unknown } = {
  runTool(asker, { name, input }, call) {
    if (typeof name !== 'string') throw new Refusal(FAULT.params, 'runTool needs a string "name"')
    if (!isObject(input)) throw new Refusal(FAULT.params, 'runTool needs an object "input"')
    return counted(call, () => asker.runTool(name, input as JsonObject))
  },
  callModel(asker, params, call) {
    const request = readQuestion(params)
    return counted(call, () => asker.callModel(request))
  },
  emitEvent: (asker, { name, data }) => asker.emitEvent(name as string, data ?? null),
  log: (asker, { level, message }) => asker.log(level as LogLevel, message as string),
  partial: (asker, { chunk }) => asker.partial(chunk),
  extend: (asker) => asker.extend(),
}

async function counted<Value>(call: Serving, serve: () => Promise<Value>): Promise<Value> {
  if (call.asked >= MAX_ASKED) {
    throw new Refusal(FAULT.busy, `${MAX_ASKED} requests of this call are being served; wait for one of them`)
  }
  call.asked++
  try {
    return await serve()
  } finally {
    call.asked--
  }
}

/** What a plugin may say to a model; the rest of its params is not passed on. */
function readQuestion({ messages, model, tools, temperature, maxTokens, topP, responseFormat }: Params): ModelQuestion {
  try {
    const request = { messages: readMessages(messages, 'the request'), model, tools, temperature, maxTokens, topP }
    return { ...request, responseFormat } as ModelQuestion
  } catch (error) {
    throw new Refusal(FAULT.params, messageOf(error))
  }
}

/** What a plugin is answered, as text. A line that is too long would end it, and with it the calls of others. */
export function answerText(answer: unknown): string {
  const text = JSON.stringify(answer ?? null)
  if (!isTooLong(text)) return text
  throw new Refusal(FAULT.tooLong, `the answer is longer than ${MAX_LINE_BYTES} bytes`)
}

/** An error as a plugin is told of it: no stack, no cause. */
export function faultOf(error: unknown): WireError {
  if (error instanceof Refusal) return { code: error.code, message: error.message }
  const { name, message, code } = showError(error)
  return { code: FAULT.handler, message, data: code === undefined ? { name } : { name, code } }
}
