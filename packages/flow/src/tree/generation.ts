import type { Report } from '../faults/report.ts'
import { kindOf } from './kinds.ts'
import { below, follow, type Placed } from './placed.ts'

/** Other parameters are passed on to the provider as they are. */
const NUMERIC = ['max_tokens', 'temperature', 'top_p']

export function checkGeneration(report: Report, parameters: Placed): void {
  for (const name of NUMERIC) {
    if (!Object.hasOwn(parameters.value as object, name)) continue
    const found = follow(below(parameters, name))
    if ('lost' in found || found.value === null || typeof found.value === 'number') continue
    report.fault('FLOW_GENERATION', found.path, `"${name}" must be a number or null, not ${kindOf(found.value)}.`)
  }
}
