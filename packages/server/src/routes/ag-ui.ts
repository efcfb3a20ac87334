import type { Json } from '@sluice/core'
import { type Context, Hono } from 'hono'
import { describeRoute } from 'hono-openapi'
import { noCode } from '../guard/request-code.ts'
import { jsonBody } from '../http/body.ts'
import type { Env } from '../http/env.ts'
import { HttpError } from '../http/errors.ts'
import { answers } from '../http/openapi.ts'
import type { Parts } from '../parts.ts'
import { agUi } from '../protocols/ag-ui/ag-ui.ts'
import { callsIn, conversationIn, namedInputs, type RunAgentInput, runAgentInput } from '../protocols/ag-ui/input.ts'
import { agUiRendering } from '../protocols/ag-ui/rendering.ts'
import { consentTo } from '../protocols/common/consent.ts'
import { inputsOf } from '../protocols/common/conversation.ts'
import { eventStream } from '../protocols/stream.ts'
import { readThreadName } from '../runs/thread-name.ts'
import { type Answer, openAskOf, resumeWith, startWith } from './run-request.ts'

/** An agent of AG-UI for each flow. */
export function agUiRoutes(parts: Parts): Hono<Env> {
  return new Hono<Env>().post(
    '/:flow',
    describeRoute({
      summary: 'Run a flow, or go on with its answers, as an agent of AG-UI',
      description: 'Takes a RunAgentInput and streams AG-UI events.',
      responses: answers({}),
    }),
    noCode(['tools']),
    jsonBody(runAgentInput),
    async (ctx) => {
      const input = ctx.req.valid('json')
      const name = ctx.req.param('flow')
      const { flow } = await parts.flows.named(name)
      const { threadId, runId, state, resume } = input
      const thread = readThreadName(threadId)
      const request =
        resume == null || resume.length === 0
          ? startWith(ctx, {
              flow: name,
              thread,
              inputs: inputsOf(flow, conversationIn(input), { inputs: namedInputs(input), state }),
            })
          : resumeWith(ctx, await answersOf(ctx, parts, input))
      const protocol = {
        ...agUi,
        start: ({ id }: { readonly id: string }) =>
          agUiRendering({ run: id, threadId, runId, flow, calls: callsIn(input), state }),
      }
      return eventStream(parts, () => parts.runs.begin(request), { after: 0, protocol })
    },
  )
}

/** @throws HttpError `ANSWER_INVALID` for a cancelled interrupt that has no way to say no. */
async function answersOf(
  ctx: Context<Env>,
  parts: Parts,
  { threadId, resume }: RunAgentInput,
): Promise<readonly [Answer, ...Answer[]]> {
  const answers: Answer[] = []
  for (const { interruptId, status, payload } of resume ?? []) {
    const ask = await openAskOf(ctx, parts, threadId, interruptId)
    const value = status === 'resolved' ? ((payload ?? null) as Json) : consentTo(ask.ask, false)
    if (value === undefined) throw cannotCancel(interruptId)
    answers.push({ ask, value })
  }
  return answers as [Answer, ...Answer[]]
}

const cannotCancel = (id: string) =>
  new HttpError(
    'ANSWER_INVALID',
    `interrupt "${id}" cannot be cancelled: its schema has no answer that says no. Resolve it, or cancel the run's thread.`,
  )
