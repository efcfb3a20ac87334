import { type Field, field, type Json, type JsonObject, reduced, type Schema, type Values } from '@sluice/core'
import type { CheckedNode, DataEdge, Flow } from '../flow/model.ts'
import { cast } from '../schema/cast.ts'
import type { Property } from '../schema/property.ts'

/** A caller's input, before the start node. Titles have no periods and all other fields do, so no name is taken twice. */
export const INPUT_FIELD = 'input'
/** What the end node that was reached yields. */
export const RESULT_FIELD = 'result'
/** Values that no component lists, by title. */
const UNLISTED_FIELD = 'unlisted'

const slotOf = (node: string, title: string) => `${node}.${title}`
const variableOf = (title: string) => `.${title}`

/**
 * How values travel in a flow. With data edges, what a node puts out is written into the inputs it is led to when the node
 * ends, so of several sources the last one to end stands. Without them, and where the flow's result is whatever was produced,
 * each title is one variable that everybody writes and reads.
 */
export class Wiring {
  readonly #flow: Flow
  readonly #edges: ReadonlyMap<string, readonly DataEdge[]>
  readonly #named: boolean
  readonly #titles: ReadonlySet<string>

  constructor(flow: Flow) {
    this.#flow = flow
    const edges = flow.dataEdges ?? []
    this.#edges = new Map(flow.nodes.map(({ name }) => [name, edges.filter(({ source }) => source === name)]))
    this.#named = flow.dataEdges === undefined || flow.openOutputs
    this.#titles = new Set(flow.nodes.flatMap((node) => [...node.inputs, ...node.outputs].map(({ title }) => title)))
  }

  /** The fields of the graph's state. */
  fields(): Record<string, Field> {
    const slots = (this.#flow.dataEdges ?? []).map((edge) => slotOf(edge.destination, edge.input))
    const variables = this.#named ? [...this.#titles].map(variableOf) : []
    const fields = [INPUT_FIELD, RESULT_FIELD, ...slots, ...variables].map((name): [string, Field] => [name, field()])
    return { ...Object.fromEntries(fields), [UNLISTED_FIELD]: unlisted as Field }
  }

  /** The values that reach a node; a title that nothing has reached is not there. */
  read(node: CheckedNode, values: Values): JsonObject {
    const { dataEdges, start } = this.#flow
    if (node.name === start) return (values.get(INPUT_FIELD) ?? {}) as JsonObject
    const name = dataEdges === undefined ? variableOf : (title: string) => slotOf(node.name, title)
    const reached = collect(
      node.inputs.map(({ title }) => title),
      name,
      values,
    )
    return node.openInputs && dataEdges === undefined ? { ...this.produced(values), ...reached } : reached
  }

  /** Everything that was produced, by title. */
  produced(values: Values): JsonObject {
    return { ...(values.get(UNLISTED_FIELD) as JsonObject | undefined), ...collect(this.#titles, variableOf, values) }
  }

  /** The update of the state that a node's output comes to. */
  write(node: CheckedNode, output: JsonObject): JsonObject {
    const update: Record<string, Json> = {}
    for (const edge of this.#edges.get(node.name) ?? []) {
      const value = output[edge.output]
      if (value !== undefined)
        update[slotOf(edge.destination, edge.input)] = cast(value, this.#typeOf(edge), nameOf(edge))
    }
    if (!this.#named) return update
    const rest: Record<string, Json> = {}
    for (const [title, value] of Object.entries(output)) {
      if (this.#titles.has(title)) update[variableOf(title)] = value
      else rest[title] = value
    }
    return Object.keys(rest).length === 0 ? update : { ...update, [UNLISTED_FIELD]: rest }
  }

  #typeOf({ destination, input }: DataEdge): Property['type'] {
    const node = this.#flow.nodes.find(({ name }) => name === destination)
    return node?.inputs.find(({ title }) => title === input)?.type ?? { kind: 'any' }
  }
}

const nameOf = ({ destination, input }: DataEdge) => `input "${input}" of node "${destination}"`

const anything: Schema = { '~standard': { version: 1, vendor: 'sluice', validate: (value) => ({ value }) } }

const unlisted = reduced(anything, (current, update) => ({ ...(current as JsonObject), ...(update as JsonObject) }))

function collect(titles: Iterable<string>, fieldOf: (title: string) => string, values: Values): Record<string, Json> {
  const found: Record<string, Json> = {}
  for (const title of titles) {
    const value = values.get(fieldOf(title))
    if (value !== undefined) found[title] = value
  }
  return found
}
