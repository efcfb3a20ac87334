import { Hono } from 'hono'
import { methodNotAllowed } from 'hono/method-not-allowed'
import { requestId } from 'hono/request-id'
import { secureHeaders } from 'hono/secure-headers'
import { type Authenticate, authenticated } from './guard/authenticate.ts'
import { jsonBodies } from './guard/body.ts'
import { originsLetIn } from './guard/cors.ts'
import { type Rate, rateLimited } from './guard/rate.ts'
import type { Env } from './http/env.ts'
import { answerError, HttpError } from './http/errors.ts'
import type { Parts } from './parts.ts'
import { agUiRoutes } from './routes/ag-ui.ts'
import { aiSdkRoutes } from './routes/ai-sdk.ts'
import { askRoutes } from './routes/asks.ts'
import { capabilityRoute } from './routes/capabilities.ts'
import { decisionRoutes } from './routes/decisions.ts'
import { healthRoutes } from './routes/health.ts'
import { metricsRoute } from './routes/metrics.ts'
import { openAiRoutes } from './routes/openai.ts'
import { referenceRoutes } from './routes/reference.ts'
import { runRoutes } from './routes/runs.ts'
import { threadRoutes } from './routes/threads.ts'
import { validateRoute } from './routes/validate.ts'

export interface AppOptions {
  /** Bytes of a request's body; 1 MiB unless told. */
  readonly maxBodyBytes?: number
  /** Says who calls. Without it, and without a file of tokens, nobody has to say so, and all callers are one. */
  readonly authenticate?: Authenticate
  /** Origins whose pages may call, each as `https://app.example.com`; none without it. */
  readonly corsOrigins?: readonly string[]
  /** How many requests one caller may send; any number without it. */
  readonly rate?: Rate
}

/** Everything the server answers, as a handler of web requests: it can be tried, and embedded, without a socket. */
export function createApp(parts: Parts, options: AppOptions = {}): Hono<Env> {
  const { maxBodyBytes = 2 ** 20, authenticate, corsOrigins = [], rate } = options
  const app = new Hono<Env>()
  const told = { onFault: parts.onFault, onRefused: (code: string) => parts.metrics.refused(code) }
  app.use(requestId())
  app.use(secureHeaders())
  if (corsOrigins.length > 0) app.use(originsLetIn(corsOrigins))
  app.route('/', healthRoutes(parts))
  // Whatever stands below this line is for callers who are known.
  app.use(authenticated(authenticate))
  if (rate !== undefined) app.use(rateLimited(rate))
  app.use(
    methodNotAllowed({
      app,
      onMethodNotAllowed: (ctx, methods) => {
        const allow = methods.join(', ')
        return answerError(new HttpError('METHOD_UNKNOWN', `here one may ${allow}.`, { allow }), ctx, told)
      },
    }),
  )
  app.use(jsonBodies(maxBodyBytes))
  app.route('/v1/validate', validateRoute(parts))
  app.route('/v1/runs', runRoutes(parts))
  app.route('/v1/threads', threadRoutes(parts))
  app.route('/v1/asks', askRoutes(parts))
  app.route('/v1/ag-ui', agUiRoutes(parts))
  app.route('/v1/ai-sdk', aiSdkRoutes(parts))
  app.route('/v1', openAiRoutes(parts))
  app.route('/v1/decisions', decisionRoutes(parts))
  app.route('/v1/capabilities', capabilityRoute(parts))
  app.route('/metrics', metricsRoute(parts.metrics))
  app.route('/', referenceRoutes(app, parts.version))
  app.notFound((ctx) => answerError(new HttpError('ROUTE_UNKNOWN', 'there is nothing here.'), ctx, told))
  app.onError((error, ctx) => answerError(error, ctx, told))
  return app
}
