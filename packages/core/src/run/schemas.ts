import type { GraphPlan } from '../graph/graph.ts'
import type { Schema } from '../state/schema.ts'

/** Schemas that are kept for one graph; a fan-out may ask without end. */
const MOST = 1_000

/**
 * The schemas of questions that this process has put, by the graph and the question's key: code cannot be stored, and an answer
 * should be checked before anything runs. Where another process asked, the JSON Schema that it wrote down is what there is.
 */
const known = new WeakMap<GraphPlan, Map<string, Schema>>()

export function rememberSchema(plan: GraphPlan, key: string, schema: Schema): void {
  const schemas = known.get(plan) ?? new Map<string, Schema>()
  known.set(plan, schemas)
  if (schemas.size < MOST || schemas.has(key)) schemas.set(key, schema)
}

export const rememberedSchema = (plan: GraphPlan, key: string): Schema | undefined => known.get(plan)?.get(key)
