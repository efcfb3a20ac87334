import { type Json, type JsonObject, own } from '@sluice/core'
import type { Report } from '../faults/report.ts'
import { MAX_DEPTH } from '../text/limits.ts'
import { type Definition, titleOf } from '../tree/definition.ts'
import { below, type Placed, REFERENCED, reach } from '../tree/placed.ts'
import { settingNames } from '../tree/plugin-fields.ts'
import { type Builder, componentOf } from './builder.ts'
import type { PluginComponent } from './model.ts'

/** The most values that one field may have once its references are replaced. */
const MAX_VALUES = 100_000

class TooMuch {}

export function buildPluginComponent({ report }: Builder, definition: Definition): PluginComponent {
  const { plugin } = definition
  const settings = settingNames(definition).map((name) => [name, plainValue(report, definition, name)])
  return {
    ...componentOf(definition),
    plugin: plugin?.plugin ?? '',
    pluginVersion: plugin?.version ?? '',
    settings: own(Object.fromEntries(settings)) as JsonObject,
  }
}

/** The value of a field with all its references replaced. */
export function plainValue(report: Report, definition: Definition, name: string): Json {
  try {
    return own(expand(below(definition, name), { left: MAX_VALUES, inside: [] }))
  } catch (error) {
    if (!(error instanceof TooMuch)) throw error
    report.fault(
      'FLOW_REF_SIZE',
      [...definition.path, name],
      `the references in ${titleOf(definition)} come to more than ${MAX_VALUES} values or ${MAX_DEPTH} levels. Refer to less.`,
    )
    return null
  }
}

interface Expansion {
  left: number
  /** The objects and lists around. What contains itself is cut there; the survey has reported it. */
  readonly inside: unknown[]
}

function expand(placed: Placed, state: Expansion): unknown {
  if (state.left-- <= 0 || state.inside.length > MAX_DEPTH) throw new TooMuch()
  const found = reach(placed)
  if (found === undefined || typeof found.value !== 'object') return found?.value ?? null
  const value = found.value as object
  if (state.inside.includes(value)) return null
  state.inside.push(value)
  const expanded = Array.isArray(value)
    ? value.map((_, i) => expand(below(found, i), state))
    : Object.fromEntries(
        Object.keys(value).flatMap((key) => (key === REFERENCED ? [] : [[key, expand(below(found, key), state)]])),
      )
  state.inside.pop()
  return expanded
}
