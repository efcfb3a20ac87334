import {
  anything,
  type Descriptor,
  flag,
  IO,
  object,
  one,
  oneOf,
  optional,
  refused,
  required,
  runs,
  text,
  textMap,
  texts,
} from './descriptor.ts'
import { HTTP_REQUEST } from './nodes.ts'

const TOOL = { ...IO, requires_confirmation: optional(flag, false) }
const tool = refused(['tool'], TOOL)

export const TOOLS: readonly Descriptor[] = [
  runs(['tool'], TOOL)('ServerTool', {}),
  tool('ClientTool', {}),
  tool('BuiltinTool', {
    tool_type: required(text),
    configuration: optional(object),
    executor_name: optional(anything),
    tool_version: optional(text),
  }),
  tool('RemoteTool', HTTP_REQUEST),
  tool('MCPTool', { client_transport: required(one('transport')), retry_policy: optional(object) }),
  refused(['toolbox'])('MCPToolBox', {
    client_transport: required(one('transport')),
    tool_filter: optional(anything),
    requires_confirmation: optional(flag, false),
    retry_policy: optional(object),
  }),
  refused(['toolSpec'], TOOL)('MCPToolSpec', {}),
]

const transport = refused(['transport'], { session_parameters: optional(object, { read_timeout_seconds: 60 }) })
const REMOTE = {
  url: required(text),
  auth: optional(one('auth')),
  headers: optional(textMap),
  sensitive_headers: optional(textMap),
  retry_policy: optional(object),
}
const MUTUAL_TLS = { key_file: required(text), cert_file: required(text), ca_file: required(text) }

export const TRANSPORTS: readonly Descriptor[] = [
  transport('StdioTransport', {
    command: required(text),
    args: optional(texts, []),
    env: optional(textMap),
    cwd: optional(text),
  }),
  transport('SSETransport', REMOTE),
  transport('SSEmTLSTransport', { ...REMOTE, ...MUTUAL_TLS }),
  transport('StreamableHTTPTransport', REMOTE),
  transport('StreamableHTTPmTLSTransport', { ...REMOTE, ...MUTUAL_TLS }),
  refused(['auth'])('OAuthConfig', {
    issuer: optional(text),
    endpoints: optional(object),
    client: required(one('oauthClient')),
    redirect_uri: required(text),
    scopes: optional(anything),
    scope_policy: optional(oneOf('use_challenge_or_supported', 'fixed')),
    pkce: optional(object),
    resource: optional(text),
    min_agentspec_version: optional(text),
  }),
  refused(['oauthClient'])('OAuthClientConfig', {
    type: required(oneOf('pre_registered', 'client_id_metadata_document', 'dynamic_registration')),
    client_id: optional(text),
    client_secret: optional(text),
    token_endpoint_auth_method: optional(text),
    client_id_metadata_url: optional(text),
    registration_endpoint: optional(text),
    min_agentspec_version: optional(text),
  }),
]
