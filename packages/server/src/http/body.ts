import { validator } from 'hono-openapi'
import type { z } from 'zod'
import { CODE_FIELDS } from '../guard/request-code.ts'
import { HttpError } from './errors.ts'

interface Issue {
  readonly message: string
  /** Of an object: those that it may not have. */
  readonly keys?: readonly string[]
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[]
}

const placeOf = ({ path = [] }: Issue): string =>
  path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.')

/** @throws HttpError `REQUEST_CODE`. */
function refuseCode(issues: readonly Issue[]): void {
  const found = issues.filter(({ path = [] }) => path.length === 0).flatMap(({ keys = [] }) => keys)
  const field = CODE_FIELDS.find((name) => found.includes(name))
  if (field === undefined) return
  throw new HttpError(
    'REQUEST_CODE',
    `"${field}" brings code, which this route never takes. Where the operator allows it, POST /v1/runs does.`,
  )
}

/** A JSON body of this shape, and nothing beside it; stands in the OpenAPI document as such. @throws HttpError `REQUEST_INVALID`, `REQUEST_CODE`. */
export const jsonBody = <Schema extends z.ZodType>(schema: Schema) =>
  validator('json', schema, (result) => {
    if (result.success) return
    refuseCode(result.error as readonly Issue[])
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
