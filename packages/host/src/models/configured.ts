import { type ChatModel, SluiceError } from '@sluice/core'
import { environmentName, type LlmConfig } from '@sluice/flow'
import type { Egress } from './egress/egress.ts'
import { OPENAI_URL, openAiCompatible, readUrl } from './provider.ts'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The model that a document's configuration means. A key written `$NAME` is read from the environment when the model is first
 * asked, so that a document can be checked where the key is not.
 *
 * @param egress of a document that came with a request: its models are asked only this way, and no key of the environment is used
 *   but `OPENAI_API_KEY`, and that one at OpenAI's own address only.
 * @throws SluiceError `MODEL_CONFIG` for what this release does not do: the responses API, TLS files; without a url where only
 *   an `OpenAiConfig` may go without; `MODEL_ADDRESS` where the way out is closed. The model itself throws `MODEL_KEY_MISSING`
 *   with the variable's name when it is asked and the variable is not set.
 */
export function configuredModel(config: LlmConfig, env: Environment, egress?: Egress): ChatModel {
  const { modelId, type, url, apiType, tls } = config
  const refuse = (why: string) =>
    new SluiceError('MODEL_CONFIG', `model "${config.name}" (${type}) ${why}.`, { model: modelId })
  if (apiType === 'responses')
    throw refuse('asks for the responses API, which is not supported yet; use chat_completions')
  if (Object.keys(tls).length > 0) throw refuse('names TLS files, which are not supported yet')
  // What is meant for a machine of one's own must not go to somebody else.
  if (url === undefined && type !== 'OpenAiConfig') throw refuse('needs a "url"')
  const address = url ?? OPENAI_URL
  egress?.check(new URL(readUrl(address, modelId)))
  let ready: ChatModel | undefined
  const open = () => {
    const apiKey = egress !== undefined && url !== undefined ? config.apiKey : keyOf(config, env)
    ready ??= openAiCompatible({ model: modelId, url: address, apiKey, fetch: egress?.fetch })
    return ready
  }
  return {
    model: modelId,
    chat: async (request, options) => open().chat(request, options),
    stream: (request, options) => open().stream?.(request, options) as ReturnType<NonNullable<ChatModel['stream']>>,
  }
}

function keyOf({ apiKey, type, name }: LlmConfig, env: Environment): string | undefined {
  const variable =
    environmentName(apiKey) ?? (apiKey === undefined && type === 'OpenAiConfig' ? 'OPENAI_API_KEY' : undefined)
  if (variable === undefined) return apiKey
  const key = env[variable]
  if (key !== undefined && key !== '') return key
  throw new SluiceError(
    'MODEL_KEY_MISSING',
    `model "${name}" needs a key, and the environment variable ${variable} is not set.`,
  )
}
