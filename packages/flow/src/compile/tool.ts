import { type Json, type JsonObject, own, ownObject, type Schema, SluiceError, type Tool, validate } from '@sluice/core'
import type { CheckedNode, Flow, FlowTool } from '../flow/model.ts'
import { jsonSchema } from '../schema/json-schema.ts'
import type { Property } from '../schema/property.ts'
import type { FlowParts } from './parts.ts'
import { fill, type Side } from './values.ts'

/**
 * The tools that flows use, each as its document describes it.
 *
 * @throws SluiceError `FLOW_TOOLS_MISSING`, `FLOW_CONFIRMATION`, with the name of every tool they are about.
 */
export async function toolsOf(flows: Iterable<Flow>, parts: FlowParts): Promise<ReadonlyMap<FlowTool, Tool>> {
  const described = new Set([...flows].flatMap((flow) => flow.nodes.flatMap(toolsOfNode)))
  const found = [...described].map((tool): [FlowTool, Tool | undefined] => [tool, parts.tool(tool.name)])
  const missing = found.flatMap(([tool, machine]) => (machine === undefined ? [tool] : []))
  if (missing.length > 0) {
    throw new SluiceError(
      'FLOW_TOOLS_MISSING',
      `the flow uses tools that nothing provides: ${named(missing)}; there are: ${parts.toolNames().join(', ') || 'none'}. Put executable programs of these names into --tools-dir, or load a plugin that has them.`,
    )
  }
  const gated = [...described].filter((tool) => tool.requiresConfirmation)
  if (gated.length > 0) {
    throw new SluiceError(
      'FLOW_CONFIRMATION',
      `the flow uses tools that require confirmation by a person, and this release cannot ask one yet: ${named(gated)}.`,
    )
  }
  const ready = found.map(
    async ([tool, machine]): Promise<[FlowTool, Tool]> => [tool, await documentTool(tool, machine as Tool)],
  )
  return new Map(await Promise.all(ready))
}

function toolsOfNode(node: CheckedNode): readonly FlowTool[] {
  if (node.type === 'ToolNode' && 'tool' in node) return [node.tool]
  return node.type === 'AgentNode' && 'agent' in node ? node.agent.tools : []
}

const named = (tools: readonly FlowTool[]) => [...new Set(tools.map(({ name }) => `"${name}"`))].join(', ')

/**
 * A tool as its document describes it, run by what the machine has under its name: the document's description and inputs are
 * what the model is told and what arguments are checked by.
 */
async function documentTool(described: FlowTool, machine: Tool): Promise<Tool> {
  const { name, description = machine.description, inputs } = described
  const { source, idempotent, timeoutMs } = machine
  return {
    name,
    description,
    source,
    idempotent,
    timeoutMs,
    readResult: (value) => machine.readResult(value),
    run: (args, ctx) => machine.run(args, ctx),
    ...(inputs === undefined
      ? { parameters: machine.parameters, readArguments: (given: JsonObject) => machine.readArguments(given) }
      : await takes(name, inputs, machine)),
  }
}

async function takes(name: string, inputs: readonly Property[], machine: Tool) {
  const side: Side = { properties: inputs, open: false, name: (title) => `argument "${title}"` }
  const parameters = parametersOf(inputs)
  const constraints = inputs.some(({ constrained }) => constrained)
    ? await jsonSchema(parameters, `the inputs of tool "${name}"`)
    : undefined
  return {
    parameters,
    readArguments: (given: JsonObject) => machine.readArguments(readArguments(side, constraints, given)),
  }
}

/** JSON Schema of the arguments; what has no default is required. */
function parametersOf(inputs: readonly Property[]): JsonObject {
  const required = inputs.filter((input) => input.default === undefined).map(({ title }) => title)
  const properties = Object.fromEntries(inputs.map(({ title, schema }) => [title, schema]))
  return own({ type: 'object', properties, required, additionalProperties: false }) as JsonObject
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
