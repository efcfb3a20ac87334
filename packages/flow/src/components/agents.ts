import {
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
} from './descriptor.ts'

const agentic = refused(['agentic'], IO)

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
