import { messageOf, SluiceError } from '../errors/error.ts'
import { isObject, type Json, type JsonObject } from '../json/json.ts'
import { own, ownObject } from '../json/own.ts'
import { jsonSchemaOf } from '../state/json-schema.ts'
import { type InputOf, type OutputOf, type Schema, validate } from '../state/schema.ts'
import type { AskOptions, ChildOptions, Keeping, KeptInTool, Startable } from './inside.ts'

/** What a tool is given beside its arguments. */
export interface ToolContext {
  /**
   * The model's id of the call, the same over a resume. Where no model asked it is one of ours, which tells apart the calls of one
   * run only: for an idempotency key, hand one in that `ctx.once` of the node has made.
   */
  readonly callId: string
  /** Aborts when the call is given up. */
  readonly signal: AbortSignal
  /** Present when a node made the call. */
  readonly nodeName?: string
  /** What the caller of the run gave as `context`; absent where there is none. */
  readonly context?: unknown
  /** Publishes a `custom` event. */
  emit(data: Json): void
  /** Asks a person. The call waits, and the tool runs again from its beginning when the answer is there. */
  ask<S extends Schema = Schema<Json>>(id: string, payload: Json, options?: AskOptions<S>): Promise<OutputOf<S>>
  /** Runs a graph inside the call: an agent as a tool. Asks inside it show at the top, and it goes on where it was. */
  run<State, Update>(graph: Startable<State, Update>, input: Update, options?: ChildOptions): Promise<State>
  /** What a middleware keeps, for the tools that it provides: `ctx.keptOf(this)`. Throws `KEPT_MISSING` when it declares nothing. */
  keptOf<Value>(middleware: Keeping<Value>): KeptInTool<Value>
}

/**
 * A tool, whoever provides it. Make one with {@link tool}, or implement this to bring tools from elsewhere. `Input` is what it is
 * called with and `Output` what it gives, where its schemas say so.
 */
export interface Tool<Input = unknown, Output = unknown> {
  /** Types only. */
  readonly '~input'?: Input
  readonly '~output'?: Output
  readonly name: string
  /** For the model. */
  readonly description: string
  /** JSON Schema of the arguments, an object, for the model. */
  readonly parameters: JsonObject
  /** Where it came from, as policies see it: `code`, `tools-dir`, `plugin:<name>`, `mcp:<server>`. */
  readonly source: string
  /** Whether running it twice does no harm, so that a call lost in a crash may be repeated without asking. */
  readonly idempotent: boolean
  /** Milliseconds one call may take; without it, the run's own time is the limit. */
  readonly timeoutMs?: number
  /** Fills defaults and validates; throws what is wrong, in words a model can act on. */
  readArguments(value: JsonObject): JsonObject
  /** Validates a result, the tool's own or a policy's; throws what is wrong. */
  readResult(value: unknown): Json
  /** Runs it. Throw to fail the call. */
  run(args: JsonObject, ctx: ToolContext): unknown
}

/** What a tool is called with: what its input schema takes, and any JSON object for one known by its name only. */
export type ArgumentsOf<T> =
  T extends Tool<infer Input, unknown> ? (unknown extends Input ? JsonObject : Input) : JsonObject

/** What a call of a tool gives: what its output schema makes, and any JSON without one. */
export type ResultOf<T> =
  T extends Tool<unknown, infer Output>
    ? unknown extends Output
      ? Json
      : Output extends undefined
        ? null
        : Output
    : Json

export interface ToolOptions<I extends Schema, O extends Schema> {
  readonly description: string
  readonly input: I
  readonly output?: O
  /** JSON Schema of the arguments, where `input` cannot tell it (a validator without Standard JSON Schema). */
  readonly parameters?: JsonObject
  readonly idempotent?: boolean
  readonly timeoutMs?: number
  run(args: OutputOf<I>, ctx: ToolContext): O extends Schema<unknown, infer R> ? R | Promise<InputOf<O>> : unknown
}

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/

/**
 * A typed tool. Arguments are validated before any policy sees them, and the result before anybody uses it; both are JSON.
 *
 * @throws SluiceError `TOOL_CONFIG` for a name that models refuse (letters, digits, `_` and `-`, at most 64), a missing
 *   description, or an input whose JSON Schema cannot be told.
 */
export function tool<I extends Schema, O extends Schema = Schema>(
  name: string,
  options: ToolOptions<I, O>,
): Tool<InputOf<I>, OutputOf<O>> {
  const { description, input, output, idempotent = false, timeoutMs, run } = options
  if (!TOOL_NAME.test(name)) {
    throw new SluiceError('TOOL_CONFIG', `"${name}" is no tool name; use letters, digits, "_" and "-", at most 64.`, {
      tool: name,
    })
  }
  if (typeof description !== 'string' || description.trim() === '') {
    throw new SluiceError('TOOL_CONFIG', `tool "${name}" needs a description; the model chooses by it.`, { tool: name })
  }
  return {
    name,
    description,
    parameters: options.parameters ?? parametersOf(input, name),
    source: 'code',
    idempotent,
    timeoutMs,
    readArguments: (value) =>
      ownObject(validate(input, value, `the arguments of tool "${name}"`), `the arguments of tool "${name}"`),
    readResult: (value) => readResult(name, output, value),
    run: (args, ctx) => run(args as OutputOf<I>, ctx),
  }
}

function readResult(name: string, output: Schema | undefined, value: unknown): Json {
  const what = `the result of tool "${name}"`
  return own((output === undefined ? value : validate(output, value, what)) ?? null, what)
}

function parametersOf(schema: Schema, name: string): JsonObject {
  const parameters = jsonSchemaOf(schema, `the JSON Schema of tool "${name}"`)
  if (parameters !== undefined) return parameters
  throw new SluiceError(
    'TOOL_CONFIG',
    `the input schema of tool "${name}" cannot be told as JSON Schema; give "parameters" too.`,
    { tool: name },
  )
}

/**
 * Reads the arguments that a model wrote: nothing at all is `{}`.
 *
 * @throws SluiceError `TOOL_ARGUMENTS` for text that is no JSON object; the message quotes up to 200 characters of it.
 */
export function parseToolArguments(text: string): JsonObject {
  if (text.trim() === '') return EMPTY
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw broken(`are no JSON (${messageOf(error)})`, text)
  }
  if (!isObject(value)) throw broken('are no JSON object', text)
  return ownObject(value, 'the arguments')
}

const EMPTY = own({}) as JsonObject

const broken = (why: string, text: string) =>
  new SluiceError('TOOL_ARGUMENTS', `the arguments ${why}: ${text.length > 200 ? `${text.slice(0, 200)}…` : text}`)

/**
 * Tools by name.
 *
 * @throws SluiceError `TOOL_DUPLICATE` when two have one name.
 */
export function toolTable(tools: readonly Tool[]): ReadonlyMap<string, Tool> {
  const table = new Map<string, Tool>()
  for (const entry of tools) {
    const other = table.get(entry.name)
    if (other !== undefined) {
      throw new SluiceError(
        'TOOL_DUPLICATE',
        `two tools are named "${entry.name}" (${other.source} and ${entry.source}); rename one.`,
        { tool: entry.name },
      )
    }
    table.set(entry.name, entry)
  }
  return table
}
