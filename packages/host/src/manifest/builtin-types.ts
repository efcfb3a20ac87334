/** The component types of Open Agent Specification 26.4; a plugin may not claim one. */
export const BUILTIN_TYPES: ReadonlySet<string> = new Set(
  `
  Agent Flow OciAgent A2AAgent Swarm ManagerWorkers SpecializedAgent AgentSpecializationParameters RemoteAgent AgenticComponent
  Node StartNode EndNode LlmNode AgentNode FlowNode MapNode ParallelMapNode ParallelFlowNode CatchExceptionNode BranchingNode
  ToolNode ApiNode InputMessageNode OutputMessageNode ControlFlowEdge DataFlowEdge
  Tool ServerTool ClientTool BuiltinTool RemoteTool MCPTool ToolBox MCPToolBox MCPToolSpec
  LlmConfig OpenAiCompatibleConfig VllmConfig OllamaConfig OpenAiConfig OciGenAiConfig GeminiConfig GeminiAIStudioAuthConfig
  GeminiVertexAIAuthConfig DbmsVectorChainLlmConfig LlmGenerationConfig OciClientConfigWithSecurityToken
  OciClientConfigWithApiKey OciClientConfigWithInstancePrincipal OciClientConfigWithResourcePrincipal
  ClientTransport StdioTransport SSETransport StreamableHTTPTransport SSEmTLSTransport StreamableHTTPmTLSTransport
  OAuthConfig OAuthClientConfig InMemoryCollectionDatastore OracleDatabaseDatastore PostgresDatabaseDatastore
  TlsOracleDatabaseConnectionConfig MTlsOracleDatabaseConnectionConfig TlsPostgresDatabaseConnectionConfig
  MessageTransform MessageSummarizationTransform ConversationSummarizationTransform A2AConnectionConfig A2ASessionParameters
  `
    .trim()
    .split(/\s+/),
)
