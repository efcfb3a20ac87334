import { type ChatModel, type ChatRequest, isObject, SluiceError } from '@sluice/core'

/** A model behind an OpenAI-compatible API. */
export interface OpenAiCompatible {
  readonly model: string
  /** Where the API is; without a scheme `http://` is meant, without a path `/v1`. */
  readonly url: string
  readonly apiKey?: string
  /** Sends its requests; the global one without it. */
  readonly fetch?: typeof globalThis.fetch
}

/** Where OpenAI's own API is. */
export const OPENAI_URL = 'https://api.openai.com/v1'

/**
 * A model behind an OpenAI-compatible API. The provider's code is loaded at the first call, and its own retries are off. Its
 * errors do not hold the key, whatever the provider says.
 *
 * @throws SluiceError `MODEL_CONFIG` for an address that is none, or that has a name and a password in it: errors quote addresses.
 */
export function openAiCompatible({ model, url, apiKey, fetch }: OpenAiCompatible): ChatModel {
  const baseURL = readUrl(url, model)
  let loaded: Promise<(name: string) => ChatModel> | undefined
  // A policy may have changed which model is asked, so it is the request that says it.
  const load = async ({ model: name }: ChatRequest) => {
    loaded ??= loadProvider().then(({ createOpenAICompatible, fromLanguageModel }) => {
      const provider = createOpenAICompatible({
        name: 'openai-compatible',
        baseURL,
        apiKey,
        fetch,
        includeUsage: true,
        // Without it, the schema of a structured answer is dropped and the model is asked for any JSON.
        supportsStructuredOutputs: true,
        transformRequestBody: leniently,
      })
      return (asked) => fromLanguageModel(provider.chatModel(asked))
    })
    return (await loaded)(name)
  }
  return {
    model,
    async chat(request, options) {
      const asked = await load(request)
      try {
        return await asked.chat(request, options)
      } catch (error) {
        throw withoutKey(error, apiKey)
      }
    },
    async *stream(request, options) {
      const { stream } = await load(request)
      try {
        if (stream !== undefined) yield* stream(request, options)
      } catch (error) {
        throw withoutKey(error, apiKey)
      }
    },
  }
}

/** What is shorter is no secret, and may stand in any text. */
const MIN_KEY_LENGTH = 8

/** Some providers quote the key that they refuse. */
function withoutKey(error: unknown, key = ''): unknown {
  if (key.length < MIN_KEY_LENGTH || !(error instanceof SluiceError) || !error.message.includes(key)) return error
  return new SluiceError(error.code, error.message.replaceAll(key, '[key]'), error.at)
}

/** What is needed to ask, and nobody else should wait for. */
async function loadProvider() {
  const [{ createOpenAICompatible }, { fromLanguageModel }] = await Promise.all([
    import('@ai-sdk/openai-compatible'),
    import('./language-model.ts'),
  ])
  return { createOpenAICompatible, fromLanguageModel }
}

/** A strict schema may have no defaults and must require everything; outputs of a flow may be left out. */
function leniently(body: Record<string, unknown>): Record<string, unknown> {
  const { response_format: format } = body
  if (!isObject(format) || !isObject(format.json_schema)) return body
  return { ...body, response_format: { ...format, json_schema: { ...format.json_schema, strict: false } } }
}

/** Where requests of a model go. @throws SluiceError `MODEL_CONFIG`. */
export function readUrl(url: string, model: string): string {
  const refuse = (why: string) => new SluiceError('MODEL_CONFIG', `model "${model}" has a url ${why}.`, { model })
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(url) ? url : `http://${url}`
  if (!URL.canParse(text)) throw refuse('that is no address; give one such as http://localhost:8000/v1')
  const parsed = new URL(text)
  if (parsed.username !== '' || parsed.password !== '')
    throw refuse('with a name or a password in it; give the key as api_key')
  if (parsed.pathname === '/') parsed.pathname = '/v1'
  return parsed.href.replace(/\/$/, '')
}
