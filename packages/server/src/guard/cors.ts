import { SluiceError } from '@sluice/core'
import type { MiddlewareHandler } from 'hono'
import { cors } from 'hono/cors'

/**
 * Lets pages of these origins call, with tokens and by every method there is; to all others nothing is said.
 *
 * @throws SluiceError `SERVER_CORS` for what is no origin, `*` among them.
 */
export function originsLetIn(origins: readonly string[]): MiddlewareHandler {
  for (const origin of origins) readOrigin(origin)
  const letIn = cors({
    origin: [...origins],
    allowMethods: ['GET', 'POST', 'PATCH', 'DELETE'],
    allowHeaders: ['authorization', 'content-type', 'last-event-id', 'prefer', 'x-request-id'],
    exposeHeaders: ['x-request-id', 'location', 'content-location', 'retry-after'],
    maxAge: 600,
  })
  return (ctx, next) => (origins.includes(ctx.req.header('origin') ?? '') ? letIn(ctx, next) : next())
}

function readOrigin(text: string): void {
  if (URL.canParse(text) && new URL(text).origin === text && !text.includes('*')) return
  throw new SluiceError(
    'SERVER_CORS',
    `"${text}" is no origin; name each as https://app.example.com, with its port if it has one, and without a path.`,
  )
}
