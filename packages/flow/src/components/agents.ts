import {
  anything,
  type Descriptor,
  decimal,
  flag,
  IO,
  many,
  nodeRef,
  object,
  one,
  oneOf,
  optional,
  pairs,
  refused,
  required,
  runs,
  template,
  text,
  textMap,
  whole,
} from './descriptor.ts'

const agentic = refused(['agentic'], IO)
const CACHE = {
  datastore: optional(one('datastore')),
  max_cache_size: optional(whole, 10_000),
  max_cache_lifetime: optional(whole, 14_400),
}

export const AGENTS: readonly Descriptor[] = [
  runs(['agentic', 'agent'], IO)('Agent', {
    llm_config: required(one('llm')),
    system_prompt: required(template),
    tools: optional(many('tool'), []),
    toolboxes: optional(many('toolbox'), []),
    human_in_the_loop: optional(flag, true),
    transforms: optional(many('transform'), []),
  }),
  runs(['agentic', 'flow'], IO)('Flow', {
    start_node: required(nodeRef),
    nodes: required(many('node')),
    control_flow_connections: required(many('controlEdge')),
    data_flow_connections: optional(many('dataEdge')),
  }),
  agentic('OciAgent', {
    agent_endpoint_id: required(text),
    client_config: required(one('ociClient')),
    retry_policy: optional(object),
  }),
  agentic('A2AAgent', {
    agent_url: required(text),
    connection_config: required(one('a2aConnection')),
    session_parameters: optional(object, { timeout: 60, poll_interval: 2, max_retries: 5 }),
  }),
  agentic('Swarm', {
    first_agent: required(one('agentic')),
    relationships: required(pairs('agentic')),
    handoff: optional(oneOf('never', 'optional', 'always', true, false), 'optional'),
  }),
  agentic('ManagerWorkers', { group_manager: required(one('agentic')), workers: required(many('agentic')) }),
  agentic('SpecializedAgent', {
    agent: required(one('agent')),
    agent_specialization_parameters: required(one('specialization')),
  }),
  refused(['specialization'], IO)('AgentSpecializationParameters', {
    additional_instructions: optional(template),
    additional_tools: optional(many('tool')),
    human_in_the_loop: optional(flag),
  }),
  refused(['a2aConnection'])('A2AConnectionConfig', {
    timeout: optional(decimal, 600),
    headers: optional(textMap),
    verify: optional(flag, true),
    key_file: optional(text),
    cert_file: optional(text),
    ssl_ca_cert: optional(text),
    retry_policy: optional(object),
  }),
]

export const TRANSFORMS: readonly Descriptor[] = [
  refused(['transform'])('MessageSummarizationTransform', {
    llm: required(one('llm')),
    max_message_size: optional(whole, 20_000),
    summarization_instructions: optional(text),
    summarized_message_template: optional(template, 'Summarized message: {{summary}}'),
    cache_collection_name: optional(text, 'summarized_messages_cache'),
    ...CACHE,
  }),
  refused(['transform'])('ConversationSummarizationTransform', {
    llm: required(one('llm')),
    max_num_messages: optional(whole, 50),
    max_num_characters: optional(whole),
    min_num_messages: optional(whole, 10),
    summarization_instructions: optional(text),
    summarized_conversation_template: optional(template, 'Summarized conversation: {{summary}}'),
    cache_collection_name: optional(text, 'summarized_conversations_cache'),
    ...CACHE,
  }),
]

const database = { user: required(text), password: required(text) }
const oracle = {
  ...database,
  dsn: required(text),
  config_dir: optional(text),
  protocol: optional(oneOf('tcp', 'tcps'), 'tcps'),
}

export const DATASTORES: readonly Descriptor[] = [
  refused(['datastore'])('InMemoryCollectionDatastore', { datastore_schema: required(object) }),
  refused(['datastore'])('OracleDatabaseDatastore', {
    datastore_schema: required(object),
    connection_config: required(one('connection')),
  }),
  refused(['datastore'])('PostgresDatabaseDatastore', {
    datastore_schema: required(object),
    connection_config: required(one('connection')),
  }),
  refused(['connection'])('TlsOracleDatabaseConnectionConfig', oracle),
  refused(['connection'])('MTlsOracleDatabaseConnectionConfig', {
    ...oracle,
    wallet_location: required(text),
    wallet_password: required(text),
  }),
  refused(['connection'])('TlsPostgresDatabaseConnectionConfig', {
    ...database,
    url: required(text),
    sslmode: optional(anything, 'require'),
    sslcert: optional(text),
    sslkey: optional(text),
    sslrootcert: optional(text),
    sslcrl: optional(text),
  }),
]
