import { messageOf, SluiceError } from '../errors/error.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { own } from '../json/own.ts'
import { jsonSchemaOf } from '../state/json-schema.ts'
import { type Schema, validate } from '../state/schema.ts'

/** What becomes of an answer that does not fit: the node fails, the model may answer once more, or there is no output. */
export type InvalidOutput = 'fail' | 'repair' | 'emit'

/** The answer of an agent is not what its schema takes. */
export class StructuredOutputError extends SluiceError {
  override readonly name = 'StructuredOutputError'
  /** The answer as the model wrote it. */
  readonly raw: string
  /** What is wrong with it. */
  readonly reason: string

  constructor(node: string, reason: string, raw: string, cause?: unknown) {
    super(
      'OUTPUT_INVALID',
      `node "${node}": the answer of the model is no output of the agent: ${reason}`,
      { node },
      cause,
    )
    this.raw = raw
    this.reason = reason
  }
}

/** How the answer of an agent is asked for, and read. */
export interface OutputRule {
  /** What requests carry as `responseFormat`. */
  readonly format: Json
  readonly invalid: InvalidOutput
  /** The output, or what is wrong with it. */
  read(text: string, node: string): { readonly output: Json } | StructuredOutputError
}

/**
 * Reads answers as JSON that a schema takes, and asks for them by its JSON Schema.
 *
 * @throws SluiceError `AGENT_CONFIG` for a schema whose JSON Schema cannot be told, where `format` does not stand in for it.
 */
export function outputRule(
  schema: Schema,
  {
    agent,
    format,
    invalid = 'fail',
  }: { readonly agent: string; readonly format?: Json; readonly invalid?: InvalidOutput },
): OutputRule {
  if (!['fail', 'repair', 'emit'].includes(invalid)) {
    throw new TypeError(
      `agent "${agent}" has invalidOutput ${JSON.stringify(invalid)}; give 'fail', 'repair' or 'emit'.`,
    )
  }
  return {
    format: format ?? own({ type: 'json_schema', name: 'final_output', schema: schemaOf(schema, agent) }),
    invalid,
    read(text, node) {
      try {
        return { output: own(validate(schema, JSON.parse(text), 'it') ?? null, 'it') }
      } catch (cause) {
        return new StructuredOutputError(node, messageOf(cause), text, cause)
      }
    },
  }
}

function schemaOf(schema: Schema, agent: string): JsonObject {
  const format = jsonSchemaOf(schema, `the JSON Schema of the output of agent "${agent}"`)
  if (format !== undefined) return format
  throw new SluiceError(
    'AGENT_CONFIG',
    `the output schema of agent "${agent}" cannot be told as JSON Schema; give parameters.responseFormat too.`,
    { node: agent },
  )
}
