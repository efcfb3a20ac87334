import type { ChatRequest, ChatResponse } from '../chat/chat.ts'
import { readMessages } from '../chat/read.ts'
import { SluiceError } from '../errors/error.ts'
import type { Json, JsonObject } from '../json/json.ts'
import type { Consultation } from '../seams/consultation.ts'
import type { Policy } from '../seams/policy.ts'
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
  return settle(new ToolCall(site, inner, tool, given, site.signal, { nestedIn: nesting(consultation) }))
}

function nesting({ policy, question }: Consultation): readonly Policy[] {
  if (question.nestedIn.length >= MAX_NESTED_CALLS) {
    throw refuse(policy, `makes a call nested deeper than ${MAX_NESTED_CALLS} policies`)
  }
  return [...question.nestedIn, policy]
}

const refuse = (policy: Policy, why: string) =>
  new SluiceError('POLICY_CALL', `policy "${policy.name}" ${why}.`, { policy: policy.name })
