import { createHash } from 'node:crypto'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { admits, canonical, type Half, isObject, type Json, type Policy, SEAM_NAMES, type Seam } from '@sluice/core'
import { commandHooks } from '../adapters/command-hooks/command-hooks.ts'
import type { AdapterEntry } from './entry.ts'
import { type PolicyFaults, PolicyFileError } from './faults.ts'
import { checkHooks } from './read.ts'
import { compileSelector } from './selector.ts'
import { readPolicyText, readText } from './text.ts'

/** Hooks of the file, as a policy. */
export interface AdapterPolicy extends Policy {
  readonly adapter: AdapterEntry['adapter']
  /** Whether its hooks are only told there: nothing that they may say changes anything. */
  observes(seam: Seam, half: Half): boolean
}

/** Whether a policy is only told at a half, whatever its mode: nothing that it may say there changes anything. */
export const observes = (policy: Policy, seam: Seam, half: Half): boolean =>
  'observes' in policy && (policy as AdapterPolicy).observes(seam, half)

const HALVES = SEAM_NAMES.flatMap((seam) =>
  (['before', 'after'] as const).filter((half) => admits(seam, half).length > 0).map((half) => ({ seam, half })),
)

interface Place {
  /** The folder of the policy file. The hooks run there. */
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/**
 * Makes a policy of the hooks of an entry, or of the settings file that it names.
 *
 * @returns `undefined` where something is wrong with them, which stands in the faults.
 */
export async function compileHooks(
  entry: AdapterEntry,
  { cwd, env }: Place,
  faults: PolicyFaults,
): Promise<AdapterPolicy | undefined> {
  const { adapter, name, origin, path } = entry
  const { match, ...rules } = entry.terms
  const hooks = entry.hooks ?? (await hooksOf(entry, cwd, faults))
  if (hooks === undefined) return undefined
  // What hooks do is not in the policy file where they have one of their own, and a decision names its revision.
  const version = `sha256:${createHash('sha256').update(canonical(hooks)).digest('hex')}`
  const made = commandHooks({ ...rules, name, hooks, cwd, env, plugin: faults.file, origin, version })
  const judgesResults = isObject(hooks) && hooks.PostToolUse !== undefined
  const observes = (seam: Seam, half: Half) => half === 'after' && !(seam === 'toolCall' && judgesResults)
  if (match === undefined) return { ...made, adapter, observes }
  const halves = HALVES.filter(({ seam, half }) => made.subscribes(seam, half))
  const what = `"match" of adapter "${name}" (${origin})`
  const selector = compileSelector(match, halves, what, [...path, 'match'], faults)
  return { ...made, adapter, observes, ...(selector && { match: selector }) }
}

/** The `hooks` of a settings file; nothing else of it is looked at. What is wrong there stands at its name, with its own place. */
async function hooksOf({ settings, path }: AdapterEntry, cwd: string, faults: PolicyFaults): Promise<Json | undefined> {
  if (settings === undefined) return undefined
  const file = isAbsolute(settings) ? settings : join(dirname(faults.file), settings)
  const at = [...path, 'settings']
  try {
    const text = await readText(resolve(cwd, settings), `the settings file ${file}`)
    const { value, faults: inside } = await readPolicyText(text, file)
    const hooks = isObject(value) ? value.hooks : undefined
    checkHooks(hooks, ['hooks'], inside)
    inside.finish()
    return hooks as Json
  } catch (error) {
    if (error instanceof PolicyFileError) {
      for (const { code, message, file: where, line, column } of error.faults)
        faults.add(code, at, `${where}:${line}:${column}: ${message}`)
    } else faults.addError(error, at)
    return undefined
  }
}
