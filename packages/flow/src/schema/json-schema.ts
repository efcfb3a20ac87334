import { type Json, type JsonObject, messageOf, type Schema, SluiceError } from '@sluice/core'
import type { Ajv2020, ErrorObject, Options, ValidateFunction } from 'ajv/dist/2020.js'
import { type Matching, matchingOf } from './pattern.ts'

/**
 * Makes a validator of a JSON Schema, dialect 2020-12, or draft 7 where `$schema` says so. It fills in defaults, on a copy,
 * and reports every issue. `format` is not judged. Patterns are matched in linear time: one that looks around or back is none here.
 * The validator's library is loaded at the first call.
 *
 * @param what names the schema in the error, for example `the schema of tool "pay"`.
 * @throws SluiceError `JSON_SCHEMA` for a schema that is none itself, or has a pattern that is none.
 */
export async function jsonSchema(schema: JsonObject, what = 'the schema'): Promise<Schema<unknown, Json>> {
  const judge = await compiled(schema).catch((error) => {
    throw new SluiceError('JSON_SCHEMA', `${what} is no JSON Schema: ${messageOf(error)}`, {}, error)
  })
  const standard = {
    version: 1 as const,
    vendor: 'sluice',
    validate(value: unknown) {
      const copy = structuredClone(value) as Json
      return judge(copy) ? { value: copy } : { issues: (judge.errors ?? []).map(issueOf) }
    },
    // Standard JSON Schema, so that a tool can tell a model what it takes.
    jsonSchema: { input: () => schema, output: () => schema },
  }
  return { '~standard': standard }
}

async function compiled(schema: JsonObject): Promise<ValidateFunction> {
  const dialect = dialectOf(schema)
  const [{ make, checker }, matching] = await Promise.all([dialect(), matchingOf(schema)])
  checker.validateSchema(schema, true)
  return make(matching).compile(schema)
}

const OPTIONS: Options = {
  allErrors: true,
  useDefaults: true,
  ownProperties: true,
  strict: false,
  validateFormats: false,
  logger: false,
}

type Compiler = Pick<Ajv2020, 'compile' | 'validateSchema'>

interface Dialect {
  /** A compiler for one schema and no other: it keeps all that it has seen, and schemas may take each other's names, or its own. */
  make(matching: Matching | undefined): Compiler
  /** Compares schemas with the dialect's own, and compiles none. */
  readonly checker: Compiler
}

const dialectFrom = (library: () => Promise<new (options: Options) => Compiler>) => {
  let loaded: Promise<Dialect> | undefined
  return () => {
    loaded ??= library().then((Library) => ({
      make: (regExp) =>
        new Library({ ...OPTIONS, validateSchema: false, ...(regExp === undefined ? {} : { code: { regExp } }) }),
      checker: new Library(OPTIONS),
    }))
    return loaded
  }
}

// Both are CommonJS: their names stand under `default` wherever they are loaded, in a bundle too.
const draft7 = dialectFrom(() => import('ajv').then(({ default: { Ajv } }) => Ajv))
const dialect2020 = dialectFrom(() => import('ajv/dist/2020.js').then(({ default: { Ajv2020 } }) => Ajv2020))

function dialectOf({ $schema }: JsonObject): () => Promise<Dialect> {
  if ($schema === undefined || isNamed($schema, 'https://json-schema.org/draft/2020-12/schema')) return dialect2020
  if (isNamed($schema, 'http://json-schema.org/draft-07/schema')) return draft7
  throw new Error(`its $schema, ${JSON.stringify($schema)}, is neither 2020-12 nor draft 7`)
}

const isNamed = ($schema: Json, name: string) => $schema === name || $schema === `${name}#`

function issueOf({ instancePath, keyword, params, message = 'is not valid' }: ErrorObject) {
  const path = instancePath
    .split('/')
    .slice(1)
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part.replaceAll('~1', '/').replaceAll('~0', '~')))
  return { message: `${message}${detailOf(keyword, params)}`, path }
}

/** What the library's messages leave out. */
function detailOf(keyword: string, params: Readonly<Record<string, unknown>>): string {
  if (keyword === 'additionalProperties') return `: "${params.additionalProperty}"`
  if (keyword === 'enum')
    return `: ${(params.allowedValues as readonly Json[]).map((value) => JSON.stringify(value)).join(', ')}`
  if (keyword === 'const') return `: ${JSON.stringify(params.allowedValue)}`
  return ''
}
