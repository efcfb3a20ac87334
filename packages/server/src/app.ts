import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { requestId } from 'hono/request-id'
import { secureHeaders } from 'hono/secure-headers'
import { openAPIRouteHandler } from 'hono-openapi'
import { LOCAL } from './guard/principal.ts'
import type { Env } from './http/env.ts'
import { answerError, HttpError } from './http/errors.ts'
import type { Parts } from './parts.ts'
import { askRoutes } from './routes/asks.ts'
import { capabilityRoute } from './routes/capabilities.ts'
import { decisionRoutes } from './routes/decisions.ts'
import { healthRoutes } from './routes/health.ts'
import { runRoutes } from './routes/runs.ts'
import { threadRoutes } from './routes/threads.ts'
import { validateRoute } from './routes/validate.ts'

export interface AppOptions {
  /** Bytes of a request's body; 1 MiB unless told. */
  readonly maxBodyBytes?: number
  /** Told whole of what is answered with 500. */
  readonly onFault?: (error: unknown, request: string) => void
}

/** Everything the server answers, as a handler of web requests: it can be tried, and embedded, without a socket. */
export function createApp(parts: Parts, { maxBodyBytes = 2 ** 20, onFault = () => {} }: AppOptions = {}): Hono<Env> {
  const app = new Hono<Env>()
  app.use(requestId())
  app.use(secureHeaders())
  app.use(
    bodyLimit({
      maxSize: maxBodyBytes,
      onError: () => {
        throw new HttpError('REQUEST_TOO_LARGE', `a request's body may have ${maxBodyBytes} bytes.`)
      },
    }),
  )
  app.use(async (ctx, next) => {
    ctx.set('principal', LOCAL)
    await next()
  })
  app.route('/', healthRoutes(parts))
  app.route('/v1/validate', validateRoute(parts))
  app.route('/v1/runs', runRoutes(parts))
  app.route('/v1/threads', threadRoutes(parts))
  app.route('/v1/asks', askRoutes(parts))
  app.route('/v1/decisions', decisionRoutes(parts))
  app.route('/v1/capabilities', capabilityRoute(parts))
  app.get(
    '/openapi.json',
    openAPIRouteHandler(app, {
      documentation: { openapi: '3.1.0', info: { title: 'Sluice', version: parts.version } },
    }),
  )
  app.notFound((ctx) => answerError(new HttpError('ROUTE_UNKNOWN', 'there is nothing here.'), ctx, onFault))
  app.onError((error, ctx) => answerError(error, ctx, onFault))
  return app
}
