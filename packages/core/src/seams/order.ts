import { SluiceError } from '../errors/error.ts'
import { looksLikeHook, requireHookName, typeOf } from './hooks.ts'
import type { OwnKeptScope } from './kept.ts'
import { type Hook, isOwnMiddleware, type Layer, layersAt, type OwnMiddleware } from './own.ts'
import type { Policy } from './policy.ts'
import { SEAM_NAMES } from './table.ts'

/**
 * Puts a list in order: as given, but for what the middleware themselves demand of it.
 *
 * @throws TypeError for what is no middleware, for a member that looks like a hook and is none, and for a scope or a stream gate
 *   that is none; SluiceError `MIDDLEWARE_ORDER` for two of one name, a cycle, a conflict, or one that is required and missing,
 *   with the names.
 */
export function inOrder(listed: readonly unknown[]): readonly OwnMiddleware[] {
  const known = new Map<string, OwnMiddleware>()
  for (const [i, own] of listed.entries()) {
    if (!isOwnMiddleware(own)) {
      throw new TypeError(
        `middleware ${i} is ${typeOf(own)} and no middleware; extend Middleware, or use middleware({ … }).`,
      )
    }
    if (known.has(own.name)) {
      throw refuse(`two middleware are named "${own.name}"; give one of them a name of its own`)
    }
    requireDeclared(own)
    // Its methods were looked at when it was made; what it was given since, a field of its class for example, was not.
    for (const [member, value] of Object.entries(own)) {
      if (typeof value === 'function' && looksLikeHook(member)) requireHookName(member, own.name)
    }
    known.set(own.name, own)
  }
  for (const { name, order = {} } of known.values()) {
    const missing = order.requires?.find((other) => !known.has(other))
    if (missing !== undefined) throw refuse(`middleware "${name}" requires "${missing}", which is not there; add it`)
    const foe = order.conflicts?.find((other) => known.has(other))
    if (foe !== undefined) throw refuse(`middleware "${name}" and "${foe}" cannot stand together; take one away`)
  }
  return sorted(known)
}

const SCOPES: readonly string[] = ['turn', 'thread'] satisfies readonly OwnKeptScope[]

/**
 * What a type holds in TypeScript, for who writes in JavaScript.
 *
 * @throws TypeError for a scope of what is kept, or a stream gate, that is none.
 */
export function requireDeclared({ name, kept, stream }: Pick<OwnMiddleware, 'name' | 'kept' | 'stream'>): void {
  if (kept !== undefined && !SCOPES.includes(kept?.scope)) {
    const mend =
      (kept?.scope as unknown) === 'principal'
        ? 'that scope is for policies, for a graph does not know for whom it runs. Install it as a policy, or take'
        : 'kept.scope is one of:'
    throw new TypeError(`middleware "${name}" keeps for ${quoted(kept?.scope)}; ${mend} ${SCOPES.join(', ')}.`)
  }
  if (kept !== undefined && typeof kept.schema?.['~standard']?.validate !== 'function') {
    throw new TypeError(
      `middleware "${name}" declares kept without a schema; give one that implements Standard Schema.`,
    )
  }
  if (stream === undefined || stream === 'pass' || stream === 'hold' || typeof stream?.judge === 'function') return
  throw new TypeError(
    `middleware "${name}" declares stream: ${quoted(stream)}; give 'pass', 'hold' or blocks(characters, judge).`,
  )
}

const quoted = (value: unknown): string => (typeof value === 'string' ? `"${value}"` : typeOf(value))

/** Takes, again and again, the first that nobody left must stand before. */
function sorted(known: ReadonlyMap<string, OwnMiddleware>): readonly OwnMiddleware[] {
  const left = new Map(known)
  const precedes = (a: OwnMiddleware, b: OwnMiddleware): boolean =>
    (a.order?.before?.includes(b.name) || b.order?.after?.includes(a.name)) ?? false
  const result: OwnMiddleware[] = []
  while (left.size > 0) {
    const next = [...left.values()].find((one) => ![...left.values()].some((other) => precedes(other, one)))
    if (next === undefined) {
      throw refuse(
        `${[...left.keys()].map((name) => `"${name}"`).join(', ')} each must stand before another; loosen one`,
      )
    }
    left.delete(next.name)
    result.push(next)
  }
  return result
}

const refuse = (why: string) => new SluiceError('MIDDLEWARE_ORDER', `${why}.`)

/** Who is consulted at each half of each seam, in order: for people. */
export function explainOrder(
  own: readonly OwnMiddleware[],
  policies: readonly Pick<Policy, 'name' | 'mode' | 'subscribes'>[],
): string {
  const lines: string[] = []
  const tell = (where: string, names: readonly string[]) => {
    if (names.length > 0) lines.push(`${where.padEnd(20)}${names.join(' → ')}`)
  }
  for (const seam of SEAM_NAMES) {
    const layers = layersAt(own, seam)
    const named = (part: keyof Layer) =>
      layers.flatMap((layer) => {
        const hook = layer[part] as Hook<unknown> | undefined
        return hook === undefined ? [] : [`${layer.middleware.name}.${hook.name}`]
      })
    const judging = (half: 'before' | 'after') =>
      policies
        .filter((policy) => policy.mode !== 'off' && policy.subscribes(seam, half))
        .map(({ name, mode }) => `policy ${name}${mode === 'shadow' ? ' (shadow)' : ''}`)
    const inwards = layers.flatMap(({ middleware, before, wrap }) =>
      [before, wrap].flatMap((hook) => (hook === undefined ? [] : [`${middleware.name}.${hook.name}`])),
    )
    tell(`${seam}.before`, [...inwards, ...judging('before')])
    tell(`${seam} failed`, [...named('rescue'), ...named('observe').reverse()])
    tell(`${seam}.after`, [...named('after').reverse(), ...judging('after')])
    tell(`${seam} ended`, named('end').reverse())
  }
  const gated = (gate: string) =>
    own.flatMap(({ name, stream }) => ((typeof stream === 'object' ? 'blocks' : stream) === gate ? [name] : []))
  tell('stream held by', gated('hold'))
  tell('stream in blocks by', gated('blocks'))
  return lines.join('\n')
}
