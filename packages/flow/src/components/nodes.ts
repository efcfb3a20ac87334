import {
  anything,
  type Descriptor,
  many,
  NODE,
  nodeRef,
  object,
  one,
  optional,
  refused,
  required,
  runs,
  template,
  text,
  textMap,
  texts,
} from './descriptor.ts'

const node = runs(['node'], NODE)
const refusedNode = refused(['node'], NODE)

/** What `RemoteTool` and `ApiNode` have in common. */
export const HTTP_REQUEST = {
  url: required(template),
  http_method: required(template),
  api_spec_uri: optional(template),
  data: optional(anything),
  query_params: optional(object),
  headers: optional(object),
  sensitive_headers: optional(object),
  url_allow_list: optional(texts),
  retry_policy: optional(object),
}

export const NODES: readonly Descriptor[] = [
  node('StartNode', {}),
  node('EndNode', { branch_name: optional(text, 'next') }),
  node('LlmNode', { llm_config: required(one('llm')), prompt_template: required(template) }),
  node('AgentNode', { agent: required(one('agentic')) }),
  node('ToolNode', { tool: required(one('tool')) }),
  node('BranchingNode', { mapping: required(textMap) }),
  node('FlowNode', { subflow: required(one('flow')) }),
  refusedNode('MapNode', { subflow: required(one('flow')), reducers: optional(object) }),
  refusedNode('ParallelMapNode', { subflow: required(one('flow')), reducers: optional(object) }),
  refusedNode('ParallelFlowNode', { subflows: optional(many('flow'), []) }),
  refusedNode('CatchExceptionNode', { subflow: required(one('flow')) }),
  refusedNode('ApiNode', HTTP_REQUEST),
  refusedNode('InputMessageNode', { message: optional(template) }),
  refusedNode('OutputMessageNode', { message: required(template) }),
]

export const EDGES: readonly Descriptor[] = [
  runs(['controlEdge'])('ControlFlowEdge', {
    from_node: required(nodeRef),
    from_branch: optional(text),
    to_node: required(nodeRef),
  }),
  runs(['dataEdge'])('DataFlowEdge', {
    source_node: required(nodeRef),
    source_output: required(text),
    destination_node: required(nodeRef),
    destination_input: required(text),
  }),
]
