import { equal, type Json, type Policy } from '@sluice/core'
import { type Judgement, judge } from '@sluice/core/testing'
import type { Expectation, PolicyCase } from './read.ts'

/** How one case went. */
export interface CaseResult {
  readonly name: string
  /** `cases.yaml:8`. */
  readonly origin: string
  /** `toolCall.before`. */
  readonly at: string
  readonly verdict: string
  readonly by: string
  /** What came otherwise than expected, in words; none when the case passed. */
  readonly differences: readonly string[]
  readonly durationMs: number
}

/** Consults the policies about each case, one after another. Each is a turn of its own: nothing that is kept carries over. */
export async function playCases(
  policies: readonly Policy[],
  cases: readonly PolicyCase[],
): Promise<readonly CaseResult[]> {
  const results: CaseResult[] = []
  for (const { name, origin, given, expect } of cases) {
    const began = performance.now()
    const judged = await judge(policies, given)
    results.push({
      name,
      origin,
      at: `${given.seam}.${given.half}`,
      verdict: judged.action,
      by: judged.by,
      differences: differencesOf(expect, judged),
      durationMs: Math.round(performance.now() - began),
    })
  }
  return results
}

function differencesOf(expect: Expectation, judged: Judgement): readonly string[] {
  const { verdict, by, code, reason, input, value, ask } = expect
  const differences: string[] = []
  const compare = (what: string, expected: Json | undefined, came: Json | undefined) => {
    if (expected !== undefined && !(came !== undefined && equal(expected, came)))
      differences.push(`${what} is ${shown(came)}; expected ${shown(expected)}`)
  }
  compare('the verdict', verdict, judged.action)
  compare('who decides', by, judged.by)
  compare('the code', code, judged.code)
  if (reason !== undefined && !judged.reason?.includes(reason))
    differences.push(`the reason is ${shown(judged.reason)}; expected ${shown(reason)} in it`)
  compare('what would run', input, judged.input)
  compare('what would be used', value, judged.value)
  compare('the question', ask, judged.ask)
  if (judged.error !== undefined) differences.push(judged.error.message)
  return differences
}

const shown = (value: Json | undefined): string => (value === undefined ? 'absent' : JSON.stringify(value))
