import type { StandardSchemaV1 } from '@standard-schema/spec'
import { SluiceError } from '../errors/error.ts'

/** Any validator that implements Standard Schema: zod, valibot, arktype, or an adapter of your own. */
export type Schema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output>
export type InputOf<S extends Schema> = StandardSchemaV1.InferInput<S>
export type OutputOf<S extends Schema> = StandardSchemaV1.InferOutput<S>

/**
 * Validates with a schema and hands back its output.
 *
 * @throws SluiceError `SCHEMA_MISMATCH`, one line with every issue and its path; `SCHEMA_ASYNC` for a schema that answers
 *   with a promise: state and tool arguments are checked where they are written, and that cannot wait.
 */
export function validate<Output>(schema: Schema<unknown, Output>, value: unknown, what: string): Output {
  const result = schema['~standard'].validate(value)
  if ('then' in result) {
    throw new SluiceError('SCHEMA_ASYNC', `the schema of ${what} is asynchronous; give one that answers at once.`)
  }
  if (result.issues === undefined) return result.value
  throw new SluiceError('SCHEMA_MISMATCH', `${what} does not fit its schema: ${result.issues.map(describe).join('; ')}`)
}

function describe(issue: StandardSchemaV1.Issue): string {
  const path = (issue.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.')
  return path === '' ? issue.message : `${path}: ${issue.message}`
}
