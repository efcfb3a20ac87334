import type { JsonObject } from '@sluice/core'
import type { Report } from '../faults/report.ts'
import { kindOf } from './kinds.ts'
import { below, follow, type Placed } from './placed.ts'

/** Others do not go into a request: policies judge requests, and would not see them. */
const NUMERIC = ['max_tokens', 'temperature', 'top_p']

export function checkGeneration(report: Report, parameters: Placed): void {
  for (const name of Object.keys(parameters.value as object)) {
    if (NUMERIC.includes(name) || (parameters.value as JsonObject)[name] === null) continue
    report.warn(
      'FLOW_GENERATION_IGNORED',
      [...parameters.path, name],
      `"${name}" is not passed on to the model; parameters that are: ${NUMERIC.join(', ')}.`,
      { onKey: true },
    )
  }
  for (const name of NUMERIC) {
    if (!Object.hasOwn(parameters.value as object, name)) continue
    const found = follow(below(parameters, name))
    if ('lost' in found || found.value === null || typeof found.value === 'number') continue
    report.fault('FLOW_GENERATION', found.path, `"${name}" must be a number or null, not ${kindOf(found.value)}.`)
  }
}
