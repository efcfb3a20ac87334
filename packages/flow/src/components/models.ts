import {
  anything,
  type Descriptor,
  generation,
  object,
  one,
  oneOf,
  optional,
  refused,
  required,
  runs,
  text,
  whole,
} from './descriptor.ts'

const LLM = {
  model_id: required(text),
  provider: optional(text),
  api_provider: optional(text),
  api_type: optional(text),
  url: optional(text),
  api_key: optional(text),
  default_generation_parameters: optional(generation),
  retry_policy: optional(object),
}
const OPENAI_API = { api_type: optional(oneOf('chat_completions', 'responses'), 'chat_completions') }
const COMPATIBLE = {
  ...OPENAI_API,
  url: required(text),
  key_file: optional(text),
  cert_file: optional(text),
  ca_file: optional(text),
}

const llm = runs(['llm'], LLM)
const refusedLlm = refused(['llm'], LLM)

export const MODELS: readonly Descriptor[] = [
  llm('OpenAiConfig', OPENAI_API),
  llm('OpenAiCompatibleConfig', COMPATIBLE),
  llm('VllmConfig', COMPATIBLE),
  llm('OllamaConfig', COMPATIBLE),
  refusedLlm('LlmConfig', {}),
  refusedLlm('OciGenAiConfig', {
    compartment_id: required(text),
    serving_mode: optional(oneOf('ON_DEMAND', 'DEDICATED'), 'ON_DEMAND'),
    client_config: required(one('ociClient')),
    conversation_store_id: optional(text),
  }),
  refusedLlm('GeminiConfig', { auth: required(one('geminiAuth')) }),
  refusedLlm('DbmsVectorChainLlmConfig', {
    provider: required(text),
    url: required(text),
    host: optional(text),
    credential_name: optional(text),
    transfer_timeout: optional(whole),
    connection_config: optional(one('connection')),
  }),
  refused(['geminiAuth'])('GeminiAIStudioAuthConfig', { api_key: optional(text) }),
  refused(['geminiAuth'])('GeminiVertexAIAuthConfig', {
    project_id: optional(text),
    location: optional(text, 'global'),
    credentials: optional(anything),
  }),
]

const client = refused(['ociClient'], { service_endpoint: required(text), auth_type: optional(text) })
const PROFILE = { auth_profile: required(text), auth_file_location: required(text) }

export const OCI_CLIENTS: readonly Descriptor[] = [
  client('OciClientConfigWithApiKey', PROFILE),
  client('OciClientConfigWithSecurityToken', PROFILE),
  client('OciClientConfigWithInstancePrincipal', {}),
  client('OciClientConfigWithResourcePrincipal', {}),
]
