import type { RunEvent } from '@sluice/core'
import type { RunEntry } from '@sluice/host'
import { type Context, Hono } from 'hono'
import { describeRoute } from 'hono-openapi'
import { z } from 'zod'
import { needs } from '../guard/may.ts'
import { noCode } from '../guard/request-code.ts'
import { jsonBody } from '../http/body.ts'
import type { Env } from '../http/env.ts'
import { runStatusOf } from '../http/errors.ts'
import { openAiError } from '../http/openai-error.ts'
import { answers } from '../http/openapi.ts'
import type { Parts } from '../parts.ts'
import { inputsOf, readContent } from '../protocols/common/conversation.ts'
import { Usages } from '../protocols/common/usage.ts'
import { type Completed, completion, completionStream, mayRetract } from '../protocols/openai/completion.ts'
import { type CompletionRequest, completionRequest, refuseUnsupported } from '../protocols/openai/request.ts'
import { eventStream } from '../protocols/stream.ts'
import { readThreadName } from '../runs/thread-name.ts'
import { startWith } from './run-request.ts'
import { endOf } from './runs.ts'

const modelView = z
  .object({ id: z.string(), object: z.literal('model'), created: z.number(), owned_by: z.string() })
  .meta({ ref: 'Model' })
const anything = z.object({}).catchall(z.unknown())

/** Every flow as a model of OpenAI's chat completions. */
export function openAiRoutes(parts: Parts): Hono<Env> {
  const { flows, runs } = parts
  const created = Math.floor(Date.now() / 1_000)
  const model = (id: string) => ({ id, object: 'model' as const, created, owned_by: 'sluice' })
  const app = new Hono<Env>()

  app.get(
    '/models',
    describeRoute({
      summary: 'The flows, as models',
      responses: answers({ 200: ['all of them', z.object({ object: z.literal('list'), data: z.array(modelView) })] }),
    }),
    (ctx) => ctx.json({ object: 'list' as const, data: flows.names.map(model) }),
  )

  app.get(
    '/models/:model',
    describeRoute({ summary: 'One flow, as a model', responses: answers({ 200: ['it', modelView] }) }),
    async (ctx) => {
      const name = ctx.req.param('model')
      await flows.named(name)
      return ctx.json(model(name))
    },
  )

  app.post(
    '/chat/completions',
    describeRoute({
      summary: 'Run a flow as a model',
      description: 'The last text of the user is the input of the flow; its tools are its own, and are not handed out.',
      responses: answers({ 200: ['the completion', anything] }),
    }),
    needs('run'),
    noCode(['tools']),
    jsonBody(completionRequest),
    async (ctx) => {
      const request = ctx.req.valid('json')
      refuseUnsupported(request)
      const { flow } = await flows.named(request.model)
      const begin = () => runs.begin(startWith(ctx, startOf(request, flow)))
      if (request.stream !== true) return whole(ctx, parts, { flow, model: request.model }, await begin())
      const options = { includeUsage: request.stream_options?.include_usage === true, holds: mayRetract(parts) }
      const protocol = {
        name: 'openai',
        leavingCancels: true,
        start: (run: RunEntry) => completionStream({ run, flow, model: request.model }, options),
      }
      return eventStream(parts, begin, { after: 0, protocol })
    },
  )
  return app
}

function startOf({ model, messages, sluice = {} }: CompletionRequest, flow: Completed['flow']) {
  const said = messages
    .filter(({ role }) => role !== 'tool' && role !== 'function')
    .map(({ role, content }) => readContent(role, content))
  const thread = sluice.thread === undefined ? undefined : readThreadName(sluice.thread)
  return { flow: model, thread, inputs: inputsOf(flow, said, sluice) }
}

async function whole(ctx: Context<Env>, parts: Parts, of: Pick<Completed, 'flow' | 'model'>, run: RunEntry) {
  const { ending } = await endOf(ctx, parts, run.id)
  const { status, error } = ending
  if (status === 'completed' || status === 'paused')
    return ctx.json(completion({ ...of, run }, ending, await usagesOf(parts, run.id, ctx.req.raw.signal)))
  const answered = runStatusOf(error?.code)
  // The client would run the flow again, with all that it has done already.
  return ctx.json(openAiError(answered, error ?? { message: 'the run failed.' }), answered, {
    'x-should-retry': 'false',
  })
}

async function usagesOf({ runs }: Parts, id: string, signal: AbortSignal): Promise<Usages> {
  const usages = new Usages()
  for await (const { text } of runs.follow(id, 0, signal)) {
    if (!text.startsWith('{"type":"model_result"')) continue
    usages.note(JSON.parse(text) as RunEvent & { type: 'model_result' })
  }
  return usages
}
