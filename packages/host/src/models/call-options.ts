import { type ChatMessage, type ChatRequest, isObject, type Json } from '@sluice/core'

/** A request as AI SDK models take it. */
export function callOptions(request: ChatRequest, signal: AbortSignal): Record<string, unknown> {
  const { messages, tools, temperature, maxTokens, topP, responseFormat } = request
  return {
    prompt: promptOf(messages),
    abortSignal: signal,
    ...(tools === undefined || tools.length === 0
      ? {}
      : {
          tools: tools.map(({ name, description, parameters }) => ({
            type: 'function',
            name,
            description,
            inputSchema: parameters,
          })),
          toolChoice: { type: 'auto' },
        }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
    ...(topP === undefined ? {} : { topP }),
    ...(responseFormat === undefined ? {} : { responseFormat: formatOf(responseFormat) }),
  }
}

function promptOf(messages: readonly ChatMessage[]): unknown[] {
  const toolNames = new Map<string, string>()
  return messages.map((message) => {
    for (const call of message.tool_calls ?? []) toolNames.set(call.id, call.name)
    return promptMessage(message, toolNames)
  })
}

function promptMessage(
  { role, content, tool_calls = [], tool_call_id = '' }: ChatMessage,
  toolNames: ReadonlyMap<string, string>,
): unknown {
  if (role === 'system') return { role, content }
  if (role === 'tool') {
    const result = {
      type: 'tool-result',
      toolCallId: tool_call_id,
      toolName: toolNames.get(tool_call_id) ?? '',
      output: { type: 'text', value: content },
    }
    return { role, content: [result] }
  }
  const text = content === '' && tool_calls.length > 0 ? [] : [{ type: 'text', text: content }]
  const calls = tool_calls.map(({ id, name, arguments: input }) => ({
    type: 'tool-call',
    toolCallId: id,
    toolName: name,
    input: parsed(input),
  }))
  return { role, content: [...text, ...calls] }
}

/** Arguments go back to the provider as the model wrote them; broken text stays text. */
function parsed(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text)
  } catch {
    return text
  }
}

/** `{ type: 'json_schema', name, schema }` of a chat request, or `{ type: 'json' }` for any JSON. */
function formatOf(format: Json): unknown {
  if (!isObject(format) || format.type === 'text') return { type: 'text' }
  return {
    type: 'json',
    ...(format.schema === undefined ? {} : { schema: format.schema }),
    ...(format.name === undefined ? {} : { name: format.name }),
  }
}
