import { ReadableStream } from 'node:stream/web'
import {
  type ChatMessage,
  type ChatRequest,
  type ChatResponse,
  equal,
  isObject,
  type Json,
  type Middleware,
  middleware,
  SluiceError,
  type WrapOutcome,
} from '@sluice/core'
import { callOptions } from './call-options.ts'
import { readGenerated } from './language-model.ts'

/** What is read of an AI SDK middleware; those of versions 2, 3 and 4 share it. */
export interface LanguageModelMiddleware {
  readonly specificationVersion?: string
  readonly middlewareVersion?: string
  readonly overrideProvider?: unknown
  readonly overrideModelId?: unknown
  readonly overrideSupportedUrls?: unknown
  transformParams?(options: never): PromiseLike<unknown>
  wrapGenerate?(options: never): PromiseLike<unknown>
  wrapStream?(options: never): PromiseLike<unknown>
}

type Params = { readonly [name: string]: unknown }
type Part = { readonly type?: unknown; readonly [key: string]: unknown }

interface Generated {
  readonly content: readonly Part[]
  readonly finishReason: unknown
  readonly usage: unknown
}

const VERSIONS = ['v2', 'v3', 'v4']
const OVERRIDES = ['overrideProvider', 'overrideModelId', 'overrideSupportedUrls'] as const

/** Options of a call that a chat request has too, by their names there. */
const SETTINGS = { temperature: 'temperature', maxOutputTokens: 'maxTokens', topP: 'topP' } as const
const MAPPED = ['prompt', 'tools', 'toolChoice', 'responseFormat', 'abortSignal', ...Object.keys(SETTINGS)]

/**
 * Makes own middleware of an AI SDK `LanguageModelMiddleware`: `transformParams`, then `wrapGenerate`, around each model call. A
 * streamed response is held and given to `wrapGenerate` as a whole; one that has `wrapStream` alone is given the whole as a stream.
 *
 * @throws SluiceError `MODEL_MIDDLEWARE` for another version and for an override; from a call, as the middleware's failure, for
 *   what a chat request or a response cannot hold: settings without a place in it, files.
 */
export function fromLanguageModelMiddleware(
  wrapped: LanguageModelMiddleware,
  { name = 'LanguageModelMiddleware' }: { readonly name?: string } = {},
): Middleware {
  const version = wrapped.specificationVersion ?? wrapped.middlewareVersion ?? 'v3'
  if (!VERSIONS.includes(version)) {
    throw refuse(name, `has version ${version}; versions read here are: ${VERSIONS.join(', ')}`)
  }
  const override = OVERRIDES.find((member) => wrapped[member] !== undefined)
  if (override !== undefined)
    throw refuse(name, `has ${override}, and a request names its model itself; wrap the model`)
  const judges = wrapped.wrapGenerate !== undefined || wrapped.wrapStream !== undefined
  return middleware({
    name,
    stream: judges ? 'hold' : 'pass',
    wrapModel: async (request, next, { signal }) => {
      let failed: WrapOutcome<ChatResponse> | undefined
      let last: { readonly outcome: WrapOutcome<ChatResponse>; readonly result: Generated } | undefined
      const given = callOptions(request, signal)
      const generate = (params: Params) => async (): Promise<Generated> => {
        const own = params.abortSignal === signal ? undefined : (params.abortSignal as AbortSignal | undefined)
        const outcome = await next(editsOf(name, request, given, params), own === undefined ? {} : { signal: own })
        if (!outcome.ok) {
          failed = outcome
          throw outcome.error
        }
        last = { outcome, result: resultOf(outcome.value, version) }
        return last.result
      }
      try {
        const result = await applied(wrapped, { given, generate, version, modelId: request.model })
        if (last !== undefined && result === last.result) return last.outcome
        const file = result.content.find(({ type }) => type === 'file')
        if (file !== undefined)
          throw refuse(name, 'answers with a file, and a response here is text and calls of tools')
        return { ok: true, value: readGenerated(request, result) }
      } catch (error) {
        if (error instanceof SluiceError && error.code === CODE) throw error
        return failed !== undefined && !failed.ok && failed.error === error ? failed : { ok: false, error }
      }
    },
  })
}

interface Applied {
  readonly given: Params
  readonly generate: (params: Params) => () => Promise<Generated>
  readonly version: string
  readonly modelId: string
}

async function applied(
  wrapped: LanguageModelMiddleware,
  { given, generate, version, modelId }: Applied,
): Promise<Generated> {
  const model = {
    specificationVersion: version,
    provider: 'sluice',
    modelId,
    supportedUrls: {},
    doGenerate: (params: Params) => generate(params)(),
    doStream: async (params: Params) => ({ stream: streamOf(await generate(params)()) }),
  }
  const transform = { type: 'generate', params: given, model } as never
  const params = wrapped.transformParams === undefined ? given : ((await wrapped.transformParams(transform)) as Params)
  const doGenerate = generate(params)
  const doStream = async () => ({ stream: streamOf(await doGenerate()) })
  const options = { doGenerate, doStream, params, model } as never
  if (wrapped.wrapGenerate !== undefined) return (await wrapped.wrapGenerate(options)) as Generated
  if (wrapped.wrapStream === undefined) return doGenerate()
  return collected(((await wrapped.wrapStream(options)) as { stream: AsyncIterable<Part> }).stream)
}

/** A response as models of that version give it. */
function resultOf(
  { content, tool_calls = [], finish_reason, usage }: ChatResponse,
  version: string,
): Generated & Params {
  const unified = finish_reason.replace('_', '-')
  const { inputTokens, outputTokens, totalTokens } = usage ?? {}
  const parts: Part[] = content === '' ? [] : [{ type: 'text', text: content }]
  for (const { id, name, arguments: input } of tool_calls) {
    parts.push({ type: 'tool-call', toolCallId: id, toolName: name, input })
  }
  return version === 'v2'
    ? { content: parts, finishReason: unified, usage: { inputTokens, outputTokens, totalTokens }, warnings: [] }
    : {
        content: parts,
        finishReason: { unified, raw: finish_reason },
        usage: { inputTokens: { total: inputTokens }, outputTokens: { total: outputTokens } },
        warnings: [],
      }
}

function streamOf({ content, finishReason, usage }: Generated): ReadableStream<Part> {
  const parts = content.flatMap((part, i): readonly Part[] => {
    const id = String(i)
    if (part.type !== 'text') return [part]
    return [
      { type: 'text-start', id },
      { type: 'text-delta', id, delta: part.text },
      { type: 'text-end', id },
    ]
  })
  return ReadableStream.from([
    { type: 'stream-start', warnings: [] },
    ...parts,
    { type: 'finish', finishReason, usage },
  ])
}

async function collected(stream: AsyncIterable<Part>): Promise<Generated> {
  const content: Part[] = []
  let end: Part = {}
  for await (const part of stream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'text-delta') content.push({ type: 'text', text: part.delta })
    else if (part.type === 'tool-call' || part.type === 'file') content.push(part)
    else if (part.type === 'finish') end = part
  }
  return { content, finishReason: end.finishReason, usage: end.usage }
}

/** What a middleware made of the call's options, as an edit of the request. */
function editsOf(by: string, request: ChatRequest, given: Params, params: Params): Partial<ChatRequest> {
  const stray = Object.keys(params).find((name) => params[name] !== undefined && !MAPPED.includes(name))
  if (stray !== undefined) {
    throw refuse(by, `sets ${stray}, which a chat request has no place for; set it on the model, or wrap the model`)
  }
  const gone = Object.keys(given).find((name) => given[name] !== undefined && params[name] === undefined)
  if (gone !== undefined && gone !== 'abortSignal')
    throw refuse(by, `takes ${gone} away, and an edit of a request cannot`)
  const edits: { -readonly [K in keyof ChatRequest]?: ChatRequest[K] } = {}
  for (const [name, field] of Object.entries(SETTINGS)) {
    if (params[name] !== undefined && params[name] !== given[name]) edits[field] = params[name] as number
  }
  const changed = (name: string) => params[name] !== given[name] && !equal(params[name] as Json, given[name] as Json)
  if (changed('prompt')) edits.messages = messagesOf(by, params.prompt as readonly Part[])
  if (changed('tools')) edits.tools = (params.tools as readonly Part[]).map((tool) => offered(by, request, tool))
  if (changed('toolChoice')) throw refuse(by, 'sets toolChoice, which a chat request has no place for')
  if (changed('responseFormat')) edits.responseFormat = formatOf(params.responseFormat as Part)
  return edits
}

function offered(by: string, { tools = [] }: ChatRequest, { name }: Part) {
  const found = tools.find((tool) => tool.name === name)
  if (found === undefined) throw refuse(by, `adds a tool "${String(name)}"; tools may be cut down, and not added to`)
  return found
}

const formatOf = ({ type, schema, name }: Part): Json =>
  type === 'text' ? { type } : ({ type: schema === undefined ? 'json' : 'json_schema', schema, name } as Json)

function messagesOf(by: string, prompt: readonly Part[]): readonly ChatMessage[] {
  return prompt.flatMap(({ role, content }): readonly ChatMessage[] => {
    if (typeof content === 'string') return [{ role: role as ChatMessage['role'], content }]
    const parts = content as readonly Part[]
    const other = parts.find(({ type }) => !['text', 'tool-call', 'tool-result'].includes(String(type)))
    if (other !== undefined) throw refuse(by, `puts a ${String(other.type)} into a message, which holds text here`)
    if (role === 'tool') return parts.map(toolMessage)
    const text = parts.filter(({ type }) => type === 'text').map((part) => String(part.text))
    const calls = parts
      .filter(({ type }) => type === 'tool-call')
      .map(({ toolCallId, toolName, input }) => ({
        id: String(toolCallId),
        name: String(toolName),
        arguments: typeof input === 'string' ? input : JSON.stringify(input),
      }))
    const tool_calls = calls.length === 0 ? {} : { tool_calls: calls }
    return [{ role: role as ChatMessage['role'], content: text.join(''), ...tool_calls }]
  })
}

function toolMessage({ toolCallId, output }: Part): ChatMessage {
  const value = isObject(output) ? output.value : output
  const content = typeof value === 'string' ? value : JSON.stringify(value)
  return { role: 'tool', tool_call_id: String(toolCallId), content }
}

const CODE = 'MODEL_MIDDLEWARE'

const refuse = (by: string, why: string) =>
  new SluiceError(CODE, `AI SDK middleware "${by}" ${why}.`, { middleware: by })
