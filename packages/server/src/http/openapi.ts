import { resolver } from 'hono-openapi'
import type { z } from 'zod'
import { errorBody } from './schemas.ts'

const json = (schema: z.ZodType) => ({ 'application/json': { schema: resolver(schema) } })

/** What a route answers with, for the OpenAPI document; an error has one shape everywhere. */
export const answers = (of: Readonly<Record<number, readonly [description: string, schema: z.ZodType]>>) => ({
  ...Object.fromEntries(
    Object.entries(of).map(([status, [description, schema]]) => [status, { description, content: json(schema) }]),
  ),
  default: { description: 'an error', content: json(errorBody) },
})
