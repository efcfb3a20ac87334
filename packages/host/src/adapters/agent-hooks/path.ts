import { isObject, type Json, type JsonObject } from '@sluice/core'

const SEGMENT = /\.([\w-]+)|\[(\d+)\]|\["([\w-]+)"\]/y

/** The steps of `$target.a[0]["b"]`; `undefined` for what is no such path. */
function stepsOf(path: string): readonly (string | number)[] | undefined {
  const [root = ''] = /^\$(?:target|policy_target)/.exec(path) ?? []
  const steps: (string | number)[] = []
  SEGMENT.lastIndex = root.length
  while (root !== '' && SEGMENT.lastIndex < path.length) {
    const at = SEGMENT.exec(path)
    if (at === null) return undefined
    const [, member, index, quoted] = at
    steps.push(index === undefined ? ((member ?? quoted) as string) : Number(index))
  }
  return root === '' ? undefined : steps
}

/**
 * The target with this value at a path. The last member of an object may be new; whatever is on the way there, and a place in a
 * list, is not: then it is `undefined`.
 */
export function setAt(target: Json, path: string, value: Json): Json | undefined {
  const steps = stepsOf(path)
  return steps && set(target, steps, value)
}

function set(within: Json, [step, ...rest]: readonly (string | number)[], value: Json): Json | undefined {
  if (step === undefined) return value
  if (typeof step === 'number') {
    if (!Array.isArray(within) || step >= within.length) return undefined
    const inner = set(within[step] as Json, rest, value)
    return inner === undefined ? undefined : within.with(step, inner)
  }
  if (!isObject(within) || step === '__proto__' || (rest.length > 0 && !Object.hasOwn(within, step))) return undefined
  const inner = set((within as JsonObject)[step] ?? null, rest, value)
  return inner === undefined ? undefined : { ...(within as JsonObject), [step]: inner }
}
