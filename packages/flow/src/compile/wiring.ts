import {
  type Field,
  field,
  isObject,
  type Json,
  type JsonObject,
  reduced,
  type Schema,
  type Values,
} from '@sluice/core'
import type { CheckedNode, DataEdge, Flow } from '../flow/model.ts'
import { valueAt } from './values.ts'

/** A caller's input, before the start node. Titles have no periods and all other fields do, so no name is taken twice. */
const INPUT_FIELD = 'input'
/** What the end node that was reached yields. */
const RESULT_FIELD = 'result'
/** Values that no component lists, by title. */
const UNLISTED_FIELD = 'unlisted'

const slotOf = (node: string, title: string) => `${node}.${title}`
const variableOf = (title: string) => `.${title}`

/**
 * How values travel in a flow. With data edges, what a node puts out is written into the inputs it is led to when the node
 * ends, so of several sources the last one to end stands. Without them, and where the flow's result is whatever was produced,
 * each title is one variable that everybody writes and reads. Values travel as they are; whoever takes one makes it its own type.
 */
export class Wiring {
  readonly #flow: Flow
  readonly #edges: ReadonlyMap<string, readonly DataEdge[]>
  /** The titles that may reach a node, by its name. */
  readonly #arriving: ReadonlyMap<string, ReadonlySet<string>>
  readonly #named: boolean
  readonly #titles: ReadonlySet<string>

  constructor(flow: Flow) {
    this.#flow = flow
    this.#edges = edgesBySource(flow)
    this.#arriving = arrivingTitles(flow)
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

  /** The update of the state that a caller's input comes to. */
  begin(input: JsonObject): JsonObject {
    return { [INPUT_FIELD]: whole(input) }
  }

  /** The values that reach a node; a title that nothing has reached is not there. */
  read(node: CheckedNode, values: Values): JsonObject {
    const { dataEdges, start } = this.#flow
    if (node.name === start) return (values.get(INPUT_FIELD) ?? {}) as JsonObject
    const name = dataEdges === undefined ? variableOf : (title: string) => slotOf(node.name, title)
    const reached = collect(this.#arriving.get(node.name) ?? [], name, values)
    return node.openInputs && dataEdges === undefined ? { ...this.produced(values), ...reached } : reached
  }

  /** Everything that was produced, by title. */
  produced(values: Values): JsonObject {
    return { ...(values.get(UNLISTED_FIELD) as JsonObject | undefined), ...collect(this.#titles, variableOf, values) }
  }

  /** What the end node that was reached yields. */
  result(values: Values): JsonObject {
    return (values.get(RESULT_FIELD) ?? {}) as JsonObject
  }

  /** The update of the state that a node's output comes to. */
  write(node: CheckedNode, output: JsonObject): JsonObject {
    const update: Record<string, Json> = node.type === 'EndNode' ? { [RESULT_FIELD]: whole(output) } : {}
    for (const edge of this.#edges.get(node.name) ?? []) {
      const value = valueAt(output, edge.output)
      if (value !== undefined) update[slotOf(edge.destination, edge.input)] = whole(value)
    }
    return this.#named ? { ...update, ...this.#variables(output) } : update
  }

  #variables(output: JsonObject): Record<string, Json> {
    const update: Record<string, Json> = {}
    const rest: Record<string, Json> = {}
    for (const [title, value] of Object.entries(output)) {
      if (this.#titles.has(title)) update[variableOf(title)] = whole(value)
      else rest[title] = value
    }
    return Object.keys(rest).length === 0 ? update : { ...update, [UNLISTED_FIELD]: { more: rest } }
  }
}

function edgesBySource({ dataEdges = [] }: Flow): ReadonlyMap<string, readonly DataEdge[]> {
  const edges = new Map<string, DataEdge[]>()
  for (const edge of dataEdges) {
    const of = edges.get(edge.source)
    if (of === undefined) edges.set(edge.source, [edge])
    else of.push(edge)
  }
  return edges
}

/** What a node lists, and what edges lead into it that it does not: an open node takes that too. */
function arrivingTitles({ nodes, dataEdges = [] }: Flow): ReadonlyMap<string, ReadonlySet<string>> {
  const titles = new Map(nodes.map(({ name, inputs }) => [name, new Set(inputs.map(({ title }) => title))]))
  for (const { destination, input } of dataEdges) titles.get(destination)?.add(input)
  return titles
}

/** In an update, an object with this single key stands for the whole value of a field. */
const REPLACE_KEY = '$replace'

/** A value as an update of its field, also where it happens to look like a replacement. */
const whole = (value: Json): Json =>
  isObject(value) && Object.hasOwn(value, REPLACE_KEY) ? { [REPLACE_KEY]: value as JsonObject } : value

const anything: Schema = { '~standard': { version: 1, vendor: 'sluice', validate: (value) => ({ value }) } }

const unlisted = reduced(anything, (current, update) => ({
  ...(current as JsonObject),
  ...(update as { readonly more: JsonObject }).more,
}))

function collect(titles: Iterable<string>, fieldOf: (title: string) => string, values: Values): Record<string, Json> {
  const found: Record<string, Json> = {}
  for (const title of titles) {
    const value = values.get(fieldOf(title))
    if (value !== undefined) found[title] = value
  }
  return found
}
