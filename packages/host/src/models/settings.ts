import { isObject, type JsonObject, SluiceError } from '@sluice/core'
import type { LlmConfig } from '@sluice/flow'

/**
 * Reads an `llm_config` that stands in a plugin's settings, as a document would write it: `{ component_type?, model_id, url?,
 * api_key?, default_generation_parameters? }`.
 *
 * @throws SluiceError `MODEL_CONFIG` without a `model_id`.
 */
export function llmConfigOf(config: JsonObject): LlmConfig {
  const {
    component_type: type,
    name,
    model_id: modelId,
    url,
    api_key: apiKey,
    default_generation_parameters: parameters,
  } = config
  if (typeof modelId !== 'string' || modelId === '')
    throw new SluiceError('MODEL_CONFIG', 'an llm_config needs a "model_id".')
  return {
    type: typeof type === 'string' ? type : 'OpenAiConfig',
    id: modelId,
    name: typeof name === 'string' ? name : modelId,
    modelId,
    ...(typeof url === 'string' ? { url } : {}),
    ...(typeof apiKey === 'string' ? { apiKey } : {}),
    parameters: isObject(parameters) ? (parameters as JsonObject) : {},
    tls: {},
  }
}
