import type { ChatRequest, ChatResponse } from '../../chat/chat.ts'
import type { ChatModel } from '../../chat/model.ts'
import { readMessages } from '../../chat/read.ts'
import { SluiceError } from '../../errors/error.ts'
import type { NodeRequest } from '../../graph/context.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import type { Call } from '../../seams/call.ts'
import type { Consultation } from '../../seams/consultation.ts'
import type { Policy } from '../../seams/policy.ts'
import type { Tool } from '../../tools/tool.ts'
import type { RunScope } from '../scope.ts'
import type { CallSite } from './call-site.ts'
import { ModelCall, requestTo } from './model-call.ts'
import { readArguments, settle, ToolCall } from './tool-call.ts'

/** How deep a policy's own calls may be nested in those of others. */
const MAX_NESTED_CALLS = 3

/** A policy's `ctx.callModel`: the model its own settings name, past the policies it is not nested in, off the user's stream. */
export async function callModelFrom(
  site: CallSite,
  consultation: Consultation,
  request: Omit<ChatRequest, 'model'> & { model?: string },
): Promise<ChatResponse> {
  const { policy, question } = consultation
  if (policy.model === undefined) {
    throw refuse(policy, 'has no model to call: its settings name no llm_config')
  }
  const messages = readMessages(request?.messages, `the request of policy "${policy.name}"`)
  const given = requestTo(policy.model, { ...request, messages }, `the request of policy "${policy.name}"`)
  const { nodeName, nodeType } = question.subject
  return site.runtime.gates.modelCall(
    new ModelCall(site, { nodeName, nodeType }, policy.model, given, { nestedIn: nesting(consultation) }),
  )
}

/** A policy's `ctx.runTool`: any tool of the runtime, past the policies it is not nested in. */
export async function runToolFrom(
  site: CallSite,
  consultation: Consultation,
  name: string,
  input: JsonObject,
): Promise<Json> {
  const { subject } = consultation.question
  const tool = site.runtime.tool(name)
  const given = readArguments(tool, input, `the arguments of tool "${name}"`)
  const { nodeName, nodeType } = subject
  const inner = {
    nodeName,
    nodeType,
    toolName: name,
    toolCallId: site.nextCallId(),
    caller: 'middleware',
    source: tool.source,
  } as const
  return settle(
    new ToolCall(site, inner, tool, given, site.signal, { nestedIn: nesting(consultation) }),
    site.runtime.gates,
  )
}

/** A hook's `ctx.callModel`: past the policies, off the user's stream; no middleware of the graph is consulted about it. */
export async function callModelBeside(
  scope: RunScope,
  { site, subject: { nodeName, nodeType }, nestedIn }: Call,
  named: ChatModel | string,
  request: NodeRequest,
): Promise<ChatResponse> {
  const model = typeof named === 'string' ? scope.runtime.models(named) : named
  if (model === undefined) {
    throw new SluiceError('MODEL_UNKNOWN', `a middleware asks for model "${named}", which the runtime does not have.`, {
      model: named as string,
    })
  }
  const given = requestTo(model, request, 'the request of a middleware')
  return scope.runtime.gates.modelCall(
    new ModelCall(site as CallSite, { nodeName, nodeType }, model, given, { nestedIn }),
  )
}

/** A hook's `ctx.callTool`, in the same way. */
export async function callToolBeside(
  scope: RunScope,
  { site, subject: { nodeName, nodeType }, nestedIn }: Call,
  named: Tool | string,
  input: JsonObject,
): Promise<Json> {
  const tool = typeof named === 'string' ? scope.runtime.tool(named) : named
  const given = readArguments(tool, input, `the arguments of tool "${tool.name}"`)
  const { name: toolName, source } = tool
  const toolCallId = scope.nextCallId()
  const subject = { nodeName, nodeType, toolName, toolCallId, caller: 'middleware', source } as const
  const call = new ToolCall(site as CallSite, subject, tool, given, site.signal, { nestedIn })
  return settle(call, scope.runtime.gates)
}

function nesting({ policy, question }: Consultation): readonly Policy[] {
  if (question.nestedIn.length >= MAX_NESTED_CALLS) {
    throw refuse(policy, `makes a call nested deeper than ${MAX_NESTED_CALLS} policies`)
  }
  return [...question.nestedIn, policy]
}

const refuse = (policy: Policy, why: string) =>
  new SluiceError('POLICY_CALL', `policy "${policy.name}" ${why}.`, { policy: policy.name })
