import { z } from 'zod'
import { readContent, type Said } from '../common/conversation.ts'

const message = z.looseObject({ role: z.string(), content: z.unknown().optional(), toolCalls: z.unknown().optional() })

/** What an AG-UI client sends. Tools and context of the client are not the flow's to use, and are let be. */
export const runAgentInput = z
  .looseObject({
    threadId: z.string(),
    runId: z.string().min(1).max(200),
    messages: z.array(message),
    state: z.unknown().optional().meta({ description: 'inputs that the flow declares are taken from here last' }),
    forwardedProps: z
      .unknown()
      .optional()
      .meta({ description: '`{ inputs }`: inputs of the flow by name, which come before all else' }),
    resume: z
      .array(
        z.looseObject({
          interruptId: z.string(),
          status: z.enum(['resolved', 'cancelled']),
          payload: z.unknown().optional(),
        }),
      )
      .nullish()
      .meta({ description: 'answers to the questions that the thread waits for, some or all' }),
  })
  .meta({ ref: 'RunAgentInput' })

export type RunAgentInput = z.infer<typeof runAgentInput>

/** What people and models have said. */
export const conversationIn = ({ messages }: RunAgentInput): readonly Said[] =>
  messages
    .filter(({ role }) => role === 'user' || role === 'assistant' || role === 'system' || role === 'developer')
    .map(({ role, content }) => readContent(role, content))
    .filter(({ content, other }) => content !== '' || other !== undefined)

/** Ids of the calls that the client has in its messages. */
export function callsIn({ messages }: RunAgentInput): ReadonlySet<string> {
  const calls = messages.flatMap(({ toolCalls }) => (Array.isArray(toolCalls) ? (toolCalls as readonly unknown[]) : []))
  return new Set(calls.map((call) => String((call as { id?: unknown } | null)?.id)))
}

/** What is given by name. */
export function namedInputs({ forwardedProps }: RunAgentInput): Readonly<Record<string, unknown>> | undefined {
  const { inputs } = (forwardedProps ?? {}) as { inputs?: unknown }
  return typeof inputs === 'object' && inputs !== null ? (inputs as Record<string, unknown>) : undefined
}
