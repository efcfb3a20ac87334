import {
  type ChatChunk,
  type ChatModel,
  type ChatOptions,
  type ChatRequest,
  type ChatResponse,
  isObject,
  type JsonObject,
  readResponse,
} from '@sluice/core'
import { callPlugin } from './direct.ts'
import { type ComponentSite, noAnswer } from './node.ts'

/** A model that a plugin's provider answers for; it streams only when the manifest says so. */
export function remoteModel(site: ComponentSite, config: JsonObject, streams: boolean): ChatModel {
  const ask = (request: ChatRequest, stream: boolean, ctx: ChatOptions, onPartial?: (chunk: unknown) => void) => {
    const params = { componentType: site.componentType, config, request, stream }
    return callPlugin({ ...site, method: 'chat', params, ctx, onPartial })
  }
  const what = `the answer of provider "${site.componentType}"`
  const { model_id, name } = config
  return {
    model: typeof model_id === 'string' ? model_id : typeof name === 'string' ? name : site.componentType,
    chat: async (request, options): Promise<ChatResponse> => readResponse(await ask(request, false, options), what),
    ...(streams && {
      stream: (request: ChatRequest, options: ChatOptions) =>
        chunksOf(
          options,
          (ctx, onPartial) => ask(request, true, ctx, onPartial),
          (chunk) => readChunk(chunk, site),
        ),
    }),
  }
}

type Ask = (options: ChatOptions, onPartial: (chunk: unknown) => void) => Promise<unknown>

/** The pieces as they come; what the call answers in the end is the last of them. A reader that leaves early ends the call. */
async function* chunksOf(
  options: ChatOptions,
  ask: Ask,
  read: (chunk: unknown) => ChatChunk,
): AsyncGenerator<ChatChunk> {
  const left = new AbortController()
  const parts: unknown[] = []
  let wake = () => {}
  let ended: { readonly error?: unknown } | undefined
  const end = (ending: { readonly error?: unknown }) => {
    ended = ending
    wake()
  }
  ask({ signal: AbortSignal.any([options.signal, left.signal]) }, (chunk) => {
    parts.push(chunk)
    wake()
  }).then(
    (last) => {
      parts.push(last)
      end({})
    },
    (error) => end({ error }),
  )
  try {
    for (;;) {
      while (parts.length > 0) yield read(parts.shift())
      if (ended !== undefined) break
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    if ('error' in ended) throw ended.error
  } finally {
    left.abort()
  }
}

function readChunk(chunk: unknown, { plugin, componentType }: ComponentSite): ChatChunk {
  const fault = (why: string) => noAnswer(plugin, componentType, `a piece of a response: ${why}`)
  if (chunk === null) return {}
  if (!isObject(chunk)) throw fault('an object')
  const { content, tool_calls, finish_reason, usage } = chunk
  if (content != null && typeof content !== 'string') throw fault('"content" is text')
  if (tool_calls != null && !(Array.isArray(tool_calls) && tool_calls.every(isFragment))) {
    throw fault('"tool_calls" is a list of { index, id?, name?, arguments? }')
  }
  return {
    ...(content != null && { content }),
    ...(tool_calls != null && { tool_calls }),
    ...(typeof finish_reason === 'string' && { finish_reason }),
    ...(isObject(usage) && { usage: readResponse({ content: '', usage }, 'a piece of a response').usage }),
  }
}

const isFragment = (call: unknown): boolean =>
  isObject(call) &&
  Number.isInteger(call.index) &&
  [call.id, call.name, call.arguments].every((text) => text == null || typeof text === 'string')
