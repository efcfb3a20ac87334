import { STATUS_CODES } from 'node:http'
import {
  type ChatChunk,
  type ChatModel,
  type ChatRequest,
  type ChatResponse,
  estimateUsage,
  isObject,
  messageOf,
  SluiceError,
  type Usage,
} from '@sluice/core'
import { callOptions } from './call-options.ts'
import { readUsage } from './usage.ts'

/**
 * What is asked of an AI SDK model. The specification versions 2, 3 and 4 share this much; where their parts differ (finish
 * reason, usage) both forms are read.
 */
export interface LanguageModel {
  readonly specificationVersion: string
  readonly provider: string
  readonly modelId: string
  doGenerate(options: never): PromiseLike<unknown>
  doStream(options: never): PromiseLike<unknown>
}

const VERSIONS = ['v2', 'v3', 'v4']

type Part = { readonly type?: unknown; readonly [key: string]: unknown }

/**
 * Makes a chat model of an AI SDK language model. It makes one request for one call: retries belong to policies, which see
 * them.
 *
 * @throws SluiceError `MODEL_CONFIG` for a specification version other than v2, v3 and v4.
 */
export function fromLanguageModel(model: LanguageModel): ChatModel {
  if (!VERSIONS.includes(model.specificationVersion)) {
    throw new SluiceError(
      'MODEL_CONFIG',
      `model "${model.modelId}" has specification version ${model.specificationVersion}; versions read here are: ${VERSIONS.join(', ')}.`,
    )
  }
  return {
    model: model.modelId,
    chat: (request, { signal }) =>
      asked(model, async () => readGenerated(request, await model.doGenerate(callOptions(request, signal) as never))),
    async *stream(request, { signal }) {
      const { stream } = (await asked(model, () => model.doStream(callOptions(request, signal) as never))) as {
        stream: ReadableStream<Part>
      }
      yield* chunksOf(model, request, stream)
    },
  }
}

/** What an AI SDK model answered, as a response: its text and its calls of tools. Reasoning and sources are left out. */
export function readGenerated(request: ChatRequest, result: unknown): ChatResponse {
  const { content, finishReason, usage } = result as { content: readonly Part[]; finishReason: unknown; usage: unknown }
  const text = content
    .filter((part) => part.type === 'text')
    .map((part) => String(part.text))
    .join('')
  const calls = content.filter((part) => part.type === 'tool-call').map(toolCallOf)
  const response = {
    content: text,
    finish_reason: finishText(finishReason),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  }
  return { ...response, usage: readUsage(usage) ?? estimateUsage(request, response) }
}

const toolCallOf = ({ toolCallId, toolName, input }: Part) => ({
  id: String(toolCallId),
  name: String(toolName),
  arguments: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
})

const finishText = (reason: unknown): string => (isObject(reason) ? String(reason.unified) : String(reason ?? ''))

async function* chunksOf(
  model: LanguageModel,
  request: ChatRequest,
  stream: ReadableStream<Part>,
): AsyncIterable<ChatChunk> {
  let text = ''
  let calls = 0
  for await (const part of stream as unknown as AsyncIterable<Part>) {
    if (part.type === 'text-delta') {
      const delta = String(part.delta ?? part.textDelta ?? '')
      text += delta
      yield { content: delta }
    } else if (part.type === 'tool-call') {
      const call = toolCallOf(part)
      text += call.arguments
      yield { tool_calls: [{ index: calls++, ...call }] }
    } else if (part.type === 'error') throw failure(model, part.error)
    else if (part.type === 'finish') {
      const usage: Usage = readUsage(part.usage) ?? estimateUsage(request, { content: text })
      yield { finish_reason: finishText(part.finishReason), usage }
    }
  }
}

async function asked<Value>(model: LanguageModel, ask: () => PromiseLike<Value>): Promise<Value> {
  try {
    return await ask()
  } catch (error) {
    throw failure(model, error)
  }
}

/** Policies match on the message: it begins with the HTTP status where there is one. The request, which holds the key, is left out. */
function failure(model: LanguageModel, error: unknown): unknown {
  const { name, statusCode, cause, responseHeaders } = error as ProviderError
  if (name === 'AbortError' || error instanceof SluiceError) return error
  const at = { model: model.modelId }
  if (statusCode === undefined) {
    const why = cause === undefined ? messageOf(error) : `${messageOf(error)}: ${messageOf(cause)}`
    return new SluiceError('MODEL_UNREACHABLE', `model "${model.modelId}" could not be asked: ${why}`, at)
  }
  const status = `${statusCode} ${STATUS_CODES[statusCode] ?? 'Unknown'}`
  const wait = responseHeaders?.['retry-after']
  const busy = wait === undefined ? '' : ` (Retry-After: ${wait})`
  return new SluiceError('MODEL_HTTP', `${status}: ${messageOf(error)}${busy}`, at)
}

/** What is read of a provider's error, where it has it. */
interface ProviderError {
  readonly name?: string
  readonly statusCode?: number
  readonly cause?: unknown
  readonly responseHeaders?: Readonly<Record<string, string>>
}
