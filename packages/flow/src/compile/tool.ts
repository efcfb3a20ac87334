import { type Json, type JsonObject, own, ownObject, type Schema, SluiceError, type Tool, validate } from '@sluice/core'
import type { FlowTool } from '../flow/model.ts'
import { jsonSchema } from '../schema/json-schema.ts'
import type { Property } from '../schema/property.ts'
import { fill, type Side } from './values.ts'

/**
 * A tool as its document describes it, run by what the machine has under its name: the document's description and inputs are
 * what the model is told and what arguments are checked by.
 */
export async function documentTool(described: FlowTool, machine: Tool): Promise<Tool> {
  const { name, description = machine.description, inputs } = described
  if (inputs === undefined) return { ...machine, name, description }
  const side: Side = { properties: inputs, open: false, name: (title) => `argument "${title}"` }
  const constraints = await constraintsOf(name, inputs)
  return {
    ...machine,
    name,
    description,
    parameters: parametersOf(inputs),
    readArguments: (given) => machine.readArguments(readArguments(side, constraints, given)),
    run: (args, ctx) => machine.run(args, ctx),
  }
}

/** JSON Schema of the arguments; what has no default is required. */
function parametersOf(inputs: readonly Property[]): JsonObject {
  const required = inputs.filter((input) => input.default === undefined).map(({ title }) => title)
  const properties = Object.fromEntries(inputs.map(({ title, schema }) => [title, schema]))
  return own({ type: 'object', properties, required, additionalProperties: false }) as JsonObject
}

async function constraintsOf(name: string, inputs: readonly Property[]): Promise<Schema<unknown, Json> | undefined> {
  return inputs.some(({ constrained }) => constrained)
    ? jsonSchema(parametersOf(inputs), `the inputs of tool "${name}"`)
    : undefined
}

function readArguments(side: Side, constraints: Schema<unknown, Json> | undefined, given: JsonObject): JsonObject {
  const unknown = Object.keys(given).find((title) => !side.properties.some((property) => property.title === title))
  if (unknown !== undefined) {
    const known = side.properties.map(({ title }) => title).join(', ') || 'none'
    throw new SluiceError('TOOL_ARGUMENTS', `there is no argument "${unknown}"; arguments are: ${known}`)
  }
  const filled = fill(side, given, true)
  return constraints === undefined ? filled : ownObject(validate(constraints, filled, 'the arguments'), 'the arguments')
}
