import { type ChatModel, type ChatRequest, isObject, type JsonObject, SluiceError } from '@sluice/core'
import type { LlmConfig } from '@sluice/flow'
import { configuredModel } from './configured.ts'
import type { Egress } from './egress/egress.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** What may be written as `component_type`; without one the first is meant. */
const TYPES = ['OpenAiConfig', 'OpenAiCompatibleConfig', 'VllmConfig', 'OllamaConfig']

/**
 * The model that an `llm_config` in a plugin's settings means, written as in a document: `{ component_type?, model_id, url?,
 * api_key?, default_generation_parameters? }`. Its parameters stand where a request says nothing.
 *
 * @throws SluiceError `MODEL_CONFIG` without a `model_id`, for another type, without a `url` where the type needs one.
 */
export function settingsModel(config: JsonObject, env: Environment, egress?: Egress): ChatModel {
  return {
    ...configuredModel(configOf(config), env, egress),
    defaults: parametersOf(config.default_generation_parameters),
  }
}

function configOf({ component_type, name, model_id: modelId, url, api_key: apiKey }: JsonObject): LlmConfig {
  const [usual = ''] = TYPES
  const type = component_type ?? usual
  if (typeof type !== 'string' || !TYPES.includes(type)) {
    throw new SluiceError(
      'MODEL_CONFIG',
      `an llm_config has the component_type ${JSON.stringify(type)}; types are: ${TYPES.join(', ')}.`,
    )
  }
  if (typeof modelId !== 'string' || modelId === '')
    throw new SluiceError('MODEL_CONFIG', 'an llm_config needs a "model_id".')
  return {
    type,
    id: modelId,
    name: typeof name === 'string' ? name : modelId,
    modelId,
    ...(typeof url === 'string' ? { url } : {}),
    ...(typeof apiKey === 'string' ? { apiKey } : {}),
    parameters: {},
    tls: {},
  }
}

function parametersOf(written: unknown): Pick<ChatRequest, 'temperature' | 'maxTokens' | 'topP'> {
  if (!isObject(written)) return {}
  const number = (name: string, key: string) => (typeof written[name] === 'number' ? { [key]: written[name] } : {})
  return { ...number('temperature', 'temperature'), ...number('max_tokens', 'maxTokens'), ...number('top_p', 'topP') }
}
