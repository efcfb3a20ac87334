/**
 * Every name that a trace of ours uses, in one place. `gen_ai.*` are the OpenTelemetry conventions for generative AI, which are still
 * experimental; `openinference.span.kind` lets viewers that know it show a policy as what it is; nobody has names for verdicts, so
 * those are ours.
 *
 * @see https://opentelemetry.io/docs/specs/semconv/gen-ai/
 */
export const NAMES = {
  operation: 'gen_ai.operation.name',
  agent: 'gen_ai.agent.name',
  conversation: 'gen_ai.conversation.id',
  model: 'gen_ai.request.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  tool: 'gen_ai.tool.name',
  toolCall: 'gen_ai.tool.call.id',
  errorType: 'error.type',
  spanKind: 'openinference.span.kind',
  run: 'sluice.run.id',
  status: 'sluice.run.status',
  node: 'sluice.node.name',
  nodeType: 'sluice.node.type',
  attempt: 'sluice.attempt',
  policy: 'sluice.policy.name',
  seam: 'sluice.policy.seam',
  half: 'sluice.policy.half',
  verdict: 'sluice.policy.verdict',
  mode: 'sluice.policy.mode',
} as const
