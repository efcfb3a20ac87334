import { Hono } from 'hono'
import type { Env } from '../http/env.ts'
import type { Parts } from '../parts.ts'

/** Whether the process is alive, and whether it may be sent work. Both are open to everybody. */
export function healthRoutes({ version, draining, runtime }: Parts): Hono<Env> {
  return new Hono<Env>()
    .get('/healthz', (ctx) => ctx.json({ status: 'ok', version }))
    .get('/readyz', (ctx) => {
      if (draining()) return ctx.json({ status: 'draining' }, 503)
      // Which one is no business of everybody.
      if (runtime.host.lostPolicies.length > 0) return ctx.json({ status: 'policy-lost' }, 503)
      return ctx.json({ status: 'ready' })
    })
}
