import {
  anything,
  type Descriptor,
  object,
  one,
  oneOf,
  optional,
  refused,
  required,
  template,
  text,
  whole,
} from './descriptor.ts'

const CACHE = {
  datastore: optional(one('datastore')),
  max_cache_size: optional(whole, 10_000),
  max_cache_lifetime: optional(whole, 14_400),
}

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
