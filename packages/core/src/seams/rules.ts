import { SluiceError } from '../errors/error.ts'
import { isObject } from '../json/json.ts'
import { type Parts, type Path, readPath } from '../json/path.ts'
import type { KeptScope } from './kept.ts'
import type { Policy, PolicyMode, PolicyRules } from './policy.ts'

const MODES: readonly unknown[] = ['enforce', 'shadow', 'off'] satisfies readonly PolicyMode[]
const SCOPES: readonly unknown[] = ['turn', 'thread', 'principal'] satisfies readonly KeptScope[]

/**
 * Checks what an operator decides about a policy, and how far what it keeps holds.
 *
 * @throws SluiceError `POLICY_RULES` for a mode, failure rule, breaker, selector or scope that is none; `JSON_PATH` for a path.
 */
export function readRules(
  { name, kept }: Pick<Policy, 'name' | 'kept'>,
  { mode, onFailure, breaker, match, fields, mayModify }: PolicyRules,
): { readonly fields?: readonly Parts[]; readonly mayModify?: readonly Parts[] } {
  const refuse = (why: string) => new SluiceError('POLICY_RULES', `policy "${name}" ${why}.`, { policy: name })
  if (mode !== undefined && !MODES.includes(mode)) {
    throw refuse(`has the mode ${JSON.stringify(mode)}; modes are: ${MODES.join(', ')}`)
  }
  if (onFailure !== undefined && onFailure !== 'fail' && onFailure !== 'pass') {
    throw refuse(`has the failure rule ${JSON.stringify(onFailure)}; rules are: fail, pass`)
  }
  if (breaker !== undefined && !(isCount(breaker?.failures) && breaker.openMs > 0 && Number.isFinite(breaker.openMs))) {
    throw refuse('has a breaker that is none; give { failures, openMs }, a whole number and milliseconds, 1 or more')
  }
  if (
    match !== undefined &&
    !(isObject(match) && ['subject', 'call'].includes(match.reads) && isFunction(match.matches))
  ) {
    throw refuse('has a selector that is none; give { reads, matches }, with reads "subject" or "call"')
  }
  if (kept !== undefined && !SCOPES.includes(kept.scope)) {
    throw refuse(`keeps for ${JSON.stringify(kept.scope)}; kept.scope is one of: ${SCOPES.join(', ')}`)
  }
  const paths = (of: 'fields' | 'mayModify', list: readonly Path[] | undefined) => {
    if (list === undefined) return {}
    if (!Array.isArray(list)) throw refuse(`has ${of} that are no list of paths`)
    return { [of]: list.map((path) => readPath(path, `a path in ${of} of policy "${name}"`)) }
  }
  return { ...paths('fields', fields), ...paths('mayModify', mayModify) }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 1
const isFunction = (value: unknown): boolean => typeof value === 'function'
