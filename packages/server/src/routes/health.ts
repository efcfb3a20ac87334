import { Hono } from 'hono'
import type { Env } from '../http/env.ts'
import type { Parts } from '../parts.ts'

/** Whether the process is alive, and whether it may be sent work. Both are open to everybody. */
export function healthRoutes({ version, draining }: Parts): Hono<Env> {
  return new Hono<Env>()
    .get('/healthz', (ctx) => ctx.json({ status: 'ok', version }))
    .get('/readyz', (ctx) => (draining() ? ctx.json({ status: 'draining' }, 503) : ctx.json({ status: 'ready' })))
}
