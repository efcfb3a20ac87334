import type { Json } from '@sluice/core'
import { type Context, Hono } from 'hono'
import { describeRoute } from 'hono-openapi'
import { noCode } from '../guard/request-code.ts'
import { jsonBody } from '../http/body.ts'
import type { Env } from '../http/env.ts'
import { HttpError } from '../http/errors.ts'
import { answers } from '../http/openapi.ts'
import type { Parts } from '../parts.ts'
import { aiSdk } from '../protocols/ai-sdk/ai-sdk.ts'
import {
  type ChatRequest,
  callsIn,
  chatRequest,
  conversationIn,
  type GivenApproval,
} from '../protocols/ai-sdk/input.ts'
import { type Approval, aiSdkRendering } from '../protocols/ai-sdk/rendering.ts'
import { consentTo } from '../protocols/common/consent.ts'
import { inputsOf } from '../protocols/common/conversation.ts'
import { eventStream } from '../protocols/stream.ts'
import { readThreadName } from '../runs/thread-name.ts'
import { type Answer, openAskOf, resumeWith, startWith } from './run-request.ts'

/** A chat of the AI SDK with each flow. */
export function aiSdkRoutes(parts: Parts): Hono<Env> {
  return new Hono<Env>().post(
    '/:flow',
    describeRoute({
      summary: 'Run a flow, or go on with its answers, for a chat of the AI SDK',
      description: 'Takes what `DefaultChatTransport` sends and streams a UI message.',
      responses: answers({}),
    }),
    noCode(),
    jsonBody(chatRequest),
    async (ctx) => {
      const chat = ctx.req.valid('json')
      const name = ctx.req.param('flow')
      const { flow } = await parts.flows.named(name)
      const thread = readThreadName(chat.id)
      const { calls, approvals } = callsIn(chat)
      const given = await answersOf(ctx, parts, chat, approvals)
      const last = chat.messages.at(-1)
      const messageId = last?.role === 'assistant' ? { messageId: last.id } : {}
      const shown = { approvals: shownApprovals(approvals, given), calls, ...messageId }
      const request = () =>
        isSome(given)
          ? resumeWith(ctx, given)
          : startWith(ctx, { flow: name, thread, inputs: inputsOf(flow, conversationIn(chat), chat) })
      const protocol = {
        ...aiSdk,
        start: ({ id }: { readonly id: string }) => aiSdkRendering({ run: id, thread, flow, ...shown }),
      }
      return eventStream(parts, () => parts.runs.begin(request()), { after: 0, protocol })
    },
  )
}

/** Answers in the body, and approvals in the messages of which nothing has come yet. @throws HttpError `ANSWER_INVALID`. */
async function answersOf(
  ctx: Context<Env>,
  parts: Parts,
  { id: thread, messages, answers: byId = {} }: ChatRequest,
  approvals: readonly GivenApproval[],
): Promise<readonly Answer[]> {
  const given: Answer[] = []
  const open = (id: string) => openAskOf(ctx, parts, thread, id)
  for (const [id, value] of Object.entries(byId)) given.push({ ask: await open(id), value: value as Json })
  // In a chat that went on to say something else, an approval that was given once is an old one.
  const said = messages.at(-1)?.role === 'assistant' ? approvals.filter(({ isResponse }) => isResponse) : []
  for (const { id, approved, reason } of said) {
    if (Object.hasOwn(byId, id)) continue
    const ask = await open(id)
    const value = consentTo(ask.ask, approved === true, reason)
    if (value === undefined)
      throw new HttpError('ANSWER_INVALID', `question "${id}" is none of yes and no; answer it in "answers".`)
    given.push({ ask, value })
  }
  return given
}

/** What the client was asked, and which of it is answered now. */
function shownApprovals(approvals: readonly GivenApproval[], given: readonly Answer[]): ReadonlyMap<string, Approval> {
  const now = new Set(given.map(({ ask }) => ask.ask.id))
  return new Map(
    approvals.map(({ id, toolCallId, approved }) => [
      id,
      { toolCallId, ...(now.has(id) && approved !== undefined ? { approved } : {}) },
    ]),
  )
}

const isSome = <T>(list: readonly T[]): list is readonly [T, ...T[]] => list.length > 0
