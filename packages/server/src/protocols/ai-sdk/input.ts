import { z } from 'zod'
import type { Said } from '../common/conversation.ts'
import type { Approval } from './rendering.ts'

const part = z.looseObject({ type: z.string() })
const uiMessage = z.looseObject({ id: z.string(), role: z.string(), parts: z.array(part) })

/** What a chat transport of the AI SDK sends. */
export const chatRequest = z
  .looseObject({
    id: z.string().meta({ description: 'of the chat, which is the name of the thread' }),
    messages: z.array(uiMessage),
    inputs: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: 'inputs of the flow by name, which come before all else' }),
    answers: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: 'answers to questions that are none of yes and no, by their ids' }),
  })
  .meta({ ref: 'ChatRequest' })

export type ChatRequest = z.infer<typeof chatRequest>
type Part = z.infer<typeof part>

/** What is no text of a user's message and means something: a file, a source. */
const isOther = ({ type }: Part): boolean => type !== 'text' && type !== 'step-start' && !type.startsWith('data-')

export const conversationIn = ({ messages }: ChatRequest): readonly Said[] =>
  messages
    .map(({ role, parts }): Said => {
      const content = parts
        .filter(({ type, text }) => type === 'text' && typeof text === 'string')
        .map(({ text }) => text)
      const other = role === 'user' ? parts.filter(isOther).map(({ type }) => type.slice(0, 40)) : []
      return { role, content: content.join('\n'), ...(other.length === 0 ? {} : { other }) }
    })
    .filter(({ content, other }) => content !== '' || other !== undefined)

const callPart = z.looseObject({
  toolCallId: z.string(),
  state: z.string().optional(),
  approval: z
    .looseObject({ id: z.string(), approved: z.boolean().optional(), reason: z.string().optional() })
    .optional(),
})

/** An approval as a message has it. */
export interface GivenApproval extends Approval {
  readonly id: string
  readonly reason?: string
  /** Whether it is answered, and nothing has come of the answer yet. */
  readonly isResponse: boolean
}

/** Calls that the client has in its messages, and what it was asked about them. */
export function callsIn({ messages }: ChatRequest): {
  readonly calls: ReadonlySet<string>
  readonly approvals: readonly GivenApproval[]
} {
  const parts = messages
    .flatMap(({ parts }) => parts)
    .flatMap((each) => {
      const { success, data } = callPart.safeParse(each)
      return success ? [data] : []
    })
  return {
    calls: new Set(parts.map(({ toolCallId }) => toolCallId)),
    approvals: parts.flatMap(({ toolCallId, state, approval }) =>
      approval === undefined ? [] : [{ ...approval, toolCallId, isResponse: state === 'approval-responded' }],
    ),
  }
}
