import type { Json, JsonObject } from '@sluice/core'
import { Hono } from 'hono'
import { describeRoute } from 'hono-openapi'
import { z } from 'zod'
import { seesAsk } from '../guard/answering.ts'
import { maySee, needs } from '../guard/may.ts'
import { jsonBody } from '../http/body.ts'
import type { Env } from '../http/env.ts'
import { answers } from '../http/openapi.ts'
import { askView as askSchema, runView as runSchema } from '../http/schemas.ts'
import { askView } from '../http/view.ts'
import type { Parts } from '../parts.ts'
import { openAsk, resumeWith } from './run-request.ts'
import { answerRun } from './runs.ts'

const answerRequest = z.strictObject({ answer: z.json() }).meta({ ref: 'Answer' })

const answered = z.object({ ask: z.string(), answered: z.literal(true) }).meta({ ref: 'Answered' })

/** The questions that runs have put, and their answers. */
export function askRoutes(parts: Parts): Hono<Env> {
  const { log, runs } = parts
  const app = new Hono<Env>()

  app.get(
    '/',
    describeRoute({
      summary: 'Open questions, the oldest first',
      responses: answers({ 200: ['those you may see', z.object({ asks: z.array(askSchema) })] }),
    }),
    async (ctx) => {
      const open = await log.asks()
      return ctx.json({
        asks: open.filter((entry) => seesAsk(ctx.get('principal'), entry)).map(askView),
      } as unknown as JsonObject)
    },
  )

  app.post(
    '/:id/answer',
    describeRoute({
      summary: 'Answer a question',
      description:
        'The run goes on, as another run of the same thread; the answer to this is how that ended. An answer counts once.',
      responses: answers({
        200: ['the run that went on completed', runSchema],
        202: ['it waits again; or you may not see it, and it goes on', z.union([runSchema, answered])],
      }),
    }),
    needs('answer'),
    jsonBody(answerRequest),
    async (ctx) => {
      const ask = await openAsk(ctx, parts, ctx.req.param('id'))
      const { answer: value } = ctx.req.valid('json')
      const begin = () => runs.begin(resumeWith(ctx, [{ ask, value: value as Json }]))
      if (!maySee(ctx, ask)) {
        // Who is named for this question alone is told nothing of the run that goes on.
        await begin()
        return ctx.json({ ask: ask.ask.id, answered: true }, 202)
      }
      return answerRun(ctx, parts, begin, ctx.req.query('protocol'))
    },
  )
  return app
}
