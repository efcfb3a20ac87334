import type { GraphPlan } from '../../graph/graph.ts'
import type { Schema } from '../../state/schema.ts'
import type { Line, Store } from '../../store/store.ts'

/** Schemas that are kept for one graph on one store; of more, the oldest go. */
const MOST = 1_000

/** Where a question stands: its key says where in a line, and a graph has many lines. */
export interface QuestionPlace {
  readonly plan: GraphPlan
  readonly store: Store
  readonly line: Line
  readonly key: string
}

/**
 * The schemas of questions that this process has put: code cannot be stored, and an answer should be checked before anything runs.
 * Where another process asked, the JSON Schema that it wrote down is what there is.
 */
const known = new WeakMap<GraphPlan, WeakMap<Store, Map<string, Schema>>>()

export function rememberSchema(place: QuestionPlace, schema: Schema): void {
  const { plan, store } = place
  const stores = known.get(plan) ?? new WeakMap<Store, Map<string, Schema>>()
  const schemas = stores.get(store) ?? new Map<string, Schema>()
  known.set(plan, stores.set(store, schemas))
  const name = nameOf(place)
  schemas.delete(name)
  schemas.set(name, schema)
  if (schemas.size > MOST) schemas.delete(schemas.keys().next().value as string)
}

export const rememberedSchema = (place: QuestionPlace): Schema | undefined =>
  known.get(place.plan)?.get(place.store)?.get(nameOf(place))

const nameOf = ({ line: { thread, branch }, key }: QuestionPlace): string => JSON.stringify([thread, branch, key])
