import { Hono } from 'hono'
import { needs } from '../guard/may.ts'
import type { Env } from '../http/env.ts'
import type { Metrics } from '../telemetry/metrics.ts'

/** Figures for Prometheus. They tell of everybody's runs, so they need the scope `read`. */
export const metricsRoute = (metrics: Metrics): Hono<Env> =>
  new Hono<Env>().get('/', needs('read'), async (ctx) =>
    ctx.body(await metrics.text(), 200, { 'content-type': metrics.registry.contentType }),
  )
