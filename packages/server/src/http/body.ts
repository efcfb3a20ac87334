import { validator } from 'hono-openapi'
import type { z } from 'zod'
import { HttpError } from './errors.ts'

interface Issue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[]
}

const placeOf = ({ path = [] }: Issue): string =>
  path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.')

/** A JSON body of this shape, and nothing beside it; stands in the OpenAPI document as such. @throws HttpError `REQUEST_INVALID`. */
export const jsonBody = <Schema extends z.ZodType>(schema: Schema) =>
  validator('json', schema, (result) => {
    if (result.success) return
    const issues = (result.error as readonly Issue[]).map(
      (issue) => `${placeOf(issue) || 'the body'}: ${issue.message}`,
    )
    throw new HttpError('REQUEST_INVALID', `the request is not what it should be. ${issues.slice(0, 8).join('; ')}.`)
  })

export const queryOf = <Schema extends z.ZodType>(schema: Schema) =>
  validator('query', schema, (result) => {
    if (result.success) return
    const issues = (result.error as readonly Issue[]).map((issue) => `?${placeOf(issue)}: ${issue.message}`)
    throw new HttpError('REQUEST_INVALID', `the query is not what it should be. ${issues.slice(0, 8).join('; ')}.`)
  })
