import type { Fault } from '@sluice/flow'
import { onTestFinished } from 'vitest'
import { PolicyFileError } from '../policies/faults.ts'
import { type Flags, type LoadedPolicies, loadPolicies } from '../policies/load.ts'
import { folderOf } from './folder.ts'

type Environment = Readonly<Record<string, string>>

/** Loads `sluice.yaml` out of a new folder with these files, beside what flags install. */
export async function load(
  files: Readonly<Record<string, string>>,
  {
    environment = {},
    runtime = 'file:///none',
    ...flags
  }: Partial<Flags> & { environment?: Environment; runtime?: string } = {},
): Promise<LoadedPolicies & { readonly folder: string; readonly warnings: readonly string[] }> {
  const cwd = folderOf(files)
  const given = { plugins: [], config: {}, env: {}, ...flags }
  const warnings: string[] = []
  const onWarning = (message: string) => warnings.push(message)
  const loaded = await loadPolicies('sluice.yaml', given, { cwd, environment, runtime, onWarning })
  onTestFinished(() => loaded.plugins.close())
  return { ...loaded, folder: cwd, warnings }
}

/** What is wrong with `sluice.yaml`, fault by fault. */
export async function faultsOf(
  files: Readonly<Record<string, string>>,
  flags?: Partial<Flags>,
): Promise<readonly Fault[]> {
  try {
    await load(files, flags)
    return []
  } catch (error) {
    if (error instanceof PolicyFileError) return error.faults
    throw error
  }
}

export const codesOf = (faults: readonly Fault[]): readonly string[] =>
  faults.map(({ code, line, column }) => `${code} ${line}:${column}`)

/** A manifest of this name, with a policy of this type at `toolCall.before`. */
export const manifest = (name: string, type: string, rest: object = {}): string =>
  JSON.stringify({
    name,
    version: '1.0.0',
    components: [{ componentType: type, kind: 'middleware', seams: { toolCall: ['before'] }, ...rest }],
  })
