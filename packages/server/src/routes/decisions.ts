import type { JsonObject } from '@sluice/core'
import { Hono } from 'hono'
import { describeRoute } from 'hono-openapi'
import { z } from 'zod'
import { has } from '../guard/may.ts'
import { ownerOf } from '../guard/principal.ts'
import { queryOf } from '../http/body.ts'
import type { Env } from '../http/env.ts'
import { answers } from '../http/openapi.ts'
import type { Parts } from '../parts.ts'

const query = z.object({
  run: z.string().optional(),
  thread: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(1_000).optional(),
})
const decision = z.object({ run: z.string(), thread: z.string() }).catchall(z.unknown()).meta({ ref: 'Decision' })

/** What policies decided in runs that have ended. Every consultation, plain ones too, is in the decision log of the operator. */
export function decisionRoutes({ log }: Parts): Hono<Env> {
  return new Hono<Env>().get(
    '/',
    describeRoute({
      summary: 'Verdicts that changed something, the latest run first',
      responses: answers({ 200: ['decisions', z.object({ decisions: z.array(decision) })] }),
    }),
    queryOf(query),
    async (ctx) => {
      const principal = ctx.get('principal')
      const { run, thread, limit = 100 } = ctx.req.valid('query')
      const owner = has(principal, 'read') ? undefined : ownerOf(principal)
      const runs = (await log.runs({ owner, thread, limit: 1_000 })).filter(({ id }) => run === undefined || id === run)
      const decisions = runs.flatMap(({ id, thread: its, ending }) =>
        (ending?.decisions ?? []).map((each) => ({ run: id, thread: its, ...each })),
      )
      return ctx.json({ decisions: decisions.slice(0, limit) } as unknown as JsonObject)
    },
  )
}
