import { dirname, resolve } from 'node:path'
import type { Half, Policy, PolicyRules, Seam } from '@sluice/core'
import { isFile } from '../manifest/entry.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { isModule } from '../manifest/module.ts'
import type { PluginConfig } from '../plugins/config-arguments.ts'
import { type Installation, type LoadOptions, loadManifests, readPlugin } from '../plugins/load.ts'
import type { Plugins } from '../plugins/plugins.ts'
import { checkSettings } from '../plugins/settings.ts'
import { digestOf, type Files } from './digest.ts'
import type { AdapterEntry, Entry, PluginEntry, PolicyFile } from './entry.ts'
import type { PolicyFaults } from './faults.ts'
import { compileHooks } from './hooks.ts'
import { nameAt, ownName, readPolicyFile } from './read.ts'
import { checkRequired } from './require.ts'
import { compileRule } from './rule.ts'
import { compileSelector } from './selector.ts'
import { readPolicyText, readText } from './text.ts'

/** What is installed with flags, beside a policy file. */
export interface Flags {
  /** Loaded after those of the file. */
  readonly plugins: readonly string[]
  /** Takes the place of what the file says about a type. */
  readonly config: PluginConfig
  /** The whole environment of these plugins. */
  readonly env: Readonly<Record<string, string>>
}

export interface LoadedPolicies {
  readonly plugins: Plugins
  /** In the order in which they are consulted: as the file lists them, then those of flags. */
  readonly policies: readonly Policy[]
}

interface Options extends Omit<LoadOptions, 'installed' | 'config' | 'env'> {
  /** Gives the variables that a plugin of the file names. */
  readonly environment: Readonly<Record<string, string | undefined>>
}

/**
 * Loads a policy file and what it names, and what is installed beside it. Nothing is started.
 *
 * @throws PolicyFileError with every fault of the file, of the manifests and settings in it, and of its expressions;
 *   SluiceError `POLICY_FILE_READ` when there is no file to read; PluginError for plugins of flags, and between plugins.
 */
export async function loadPolicies(file: string, flags: Flags, options: Options): Promise<LoadedPolicies> {
  const { value, faults } = await readPolicyText(
    await readText(resolve(options.cwd ?? '', file), `the policy file ${file}`),
    file,
  )
  const written = readPolicyFile(value, faults)
  const named = await readPlugins(written, flags, faults, options)
  const own = await compileOwn(written, faults, options)
  faults.finish()
  const beside = await Promise.all(flags.plugins.map((path) => readPlugin(path, options)))
  refuseSharedNames(written.entries, [...[...named.values()].map(({ manifest }) => manifest), ...beside], faults)
  faults.finish()
  const config = { ...Object.fromEntries([...named.values()].flatMap(({ settings }) => settings)), ...flags.config }
  const installations = new Map<Manifest, Installation>([...named.values()].map((plugin) => [plugin.manifest, plugin]))
  beside.forEach((manifest, i) => {
    installations.set(manifest, { env: flags.env, rules: { origin: `--plugin ${flags.plugins[i]}` } })
  })
  const installed = (manifest: Manifest) => installations.get(manifest) ?? { env: {}, rules: {} }
  const plugins = await loadManifests([...installations.keys()], { ...options, config, installed })
  try {
    const policies = inOrder(written.entries, own, named, plugins.policies)
    checkRequired(written.require, policies, faults)
    faults.finish()
    return { plugins, policies }
  } catch (error) {
    await plugins.close()
    throw error
  }
}

/** A plugin of the file, read and checked. */
interface NamedPlugin extends Installation {
  readonly manifest: Manifest
  readonly settings: readonly (readonly [string, PluginConfig[string]])[]
}

async function readPlugins(
  { entries, file }: PolicyFile,
  flags: Flags,
  faults: PolicyFaults,
  options: Options,
): Promise<ReadonlyMap<PluginEntry, NamedPlugin>> {
  const cwd = resolve(options.cwd ?? '', dirname(file))
  const plugins = entries.filter((entry) => entry.kind === 'plugin')
  const read = await Promise.all(
    plugins.map(async (entry) => [entry, await readOne(entry, flags, faults, { ...options, cwd })] as const),
  )
  return new Map(read.flatMap(([entry, plugin]) => (plugin === undefined ? [] : [[entry, plugin] as const])))
}

async function readOne(
  entry: PluginEntry,
  flags: Flags,
  faults: PolicyFaults,
  options: Options,
): Promise<NamedPlugin | undefined> {
  const module = resolve(options.cwd ?? '', entry.plugin)
  if (entry.digest !== undefined && isModule(module) && (await isFile(module))) {
    // Reading it runs it.
    const files = { name: entry.plugin, file: module, folder: dirname(module), tools: [] }
    if (!(await checkDigest(entry, entry.digest, files, faults))) return undefined
  }
  const manifest = await readPlugin(entry.plugin, options).catch((error: unknown) => {
    faults.addError(error, [...entry.path, 'plugin'])
    return undefined
  })
  if (manifest === undefined) return undefined
  if (entry.digest !== undefined && manifest.module === undefined)
    await checkDigest(entry, entry.digest, manifest, faults)
  return {
    manifest,
    settings: await settingsOf(entry, flags, manifest, faults),
    env: environmentOf(entry, `plugin "${manifest.name}"`, options),
    rules: rulesOf(entry, manifest, faults),
  }
}

/** A variable that is not set is told: who needs it will miss it later, when nobody looks. */
function environmentOf({ env, origin }: PluginEntry | AdapterEntry, whose: string, options: Options) {
  const { environment, onWarning = (message: string) => process.emitWarning(message) } = options
  const seen: Record<string, string> = {}
  for (const variable of env) {
    const value = environment[variable]
    if (value === undefined) onWarning(`${origin}: the variable ${variable} of ${whose} is not set`)
    else seen[variable] = value
  }
  return seen
}

async function checkDigest(
  entry: PluginEntry,
  pinned: string,
  manifest: Files & { readonly name: string },
  faults: PolicyFaults,
): Promise<boolean> {
  const digest = await digestOf(manifest)
  if (digest === pinned) return true
  const message = `plugin "${manifest.name}" is not the one that is pinned; its files have the digest ${digest}.`
  faults.add('PLUGIN_DIGEST', [...entry.path, 'digest'], message)
  return false
}

/** What the entry sets, with what flags set in its place; each type is checked, and what is wrong stands at it. */
async function settingsOf(
  entry: PluginEntry,
  flags: Flags,
  manifest: Manifest,
  faults: PolicyFaults,
): Promise<NamedPlugin['settings']> {
  const { path, config } = entry
  const policies = policiesIn(manifest)
  for (const type of Object.keys(config)) {
    if (policies.some(({ componentType }) => componentType === type)) continue
    const known = policies.map(({ componentType }) => componentType).join(', ') || 'none'
    const message = `plugin "${manifest.name}" has no policy "${type}" to set; it has: ${known}.`
    faults.add('PLUGIN_CONFIG_TYPE', [...path, 'config', type], message, { onKey: true })
  }
  const settings: [string, PluginConfig[string]][] = []
  for (const component of policies) {
    const { componentType: type } = component
    const given = own(flags.config, type) ?? own(config, type)
    if (given !== undefined) settings.push([type, given])
    const at = own(config, type) === undefined ? [...path, 'plugin'] : [...path, 'config', type]
    await checkSettings(
      [{ ...manifest, components: [component] }],
      given === undefined ? {} : { [type]: given },
      () => `write them under "config", as ${type}: { … }`,
    ).catch((error: unknown) => faults.addError(error, at))
  }
  return settings
}

const own = (config: PluginConfig, type: string) => (Object.hasOwn(config, type) ? config[type] : undefined)

const policiesIn = ({ components }: Manifest) => components.filter(({ kind }) => kind === 'middleware')

function rulesOf({ path, terms, origin }: PluginEntry, manifest: Manifest, faults: PolicyFaults): PolicyRules {
  const { match, ...rules } = terms
  const policies = policiesIn(manifest)
  if (policies.length === 0) {
    const [field] = Object.keys(terms)
    const message = `plugin "${manifest.name}" has no policy; "${field}" says nothing.`
    if (field !== undefined) faults.add('POLICY_FILE_FIELD', [...path, field], message, { onKey: true })
    return { origin }
  }
  if (match === undefined) return { origin, ...rules }
  const halves = policies.flatMap(({ seams = {} }) =>
    Object.entries(seams).flatMap(([seam, listed]) => listed.map((half: Half) => ({ seam: seam as Seam, half }))),
  )
  const what = `"match" of plugin "${manifest.name}" (${origin})`
  const selector = compileSelector(match, halves, what, [...path, 'match'], faults)
  return { origin, ...rules, ...(selector && { match: selector }) }
}

/** The policies that stand in the file itself. */
async function compileOwn(
  { entries, file }: PolicyFile,
  faults: PolicyFaults,
  options: Options,
): Promise<ReadonlyMap<Entry, Policy>> {
  const cwd = resolve(options.cwd ?? '', dirname(file))
  const own = new Map<Entry, Policy>()
  for (const entry of entries) {
    if (entry.kind === 'plugin') continue
    const compiled =
      entry.kind === 'rule'
        ? compileRule(entry, faults)
        : await compileHooks(entry, { cwd, env: environmentOf(entry, `adapter "${entry.name}"`, options) }, faults)
    if (compiled !== undefined) own.set(entry, compiled)
  }
  return own
}

/** Questions, logs and reasons name a policy by its name alone. */
function refuseSharedNames(entries: readonly Entry[], manifests: readonly Manifest[], faults: PolicyFaults): void {
  for (const entry of entries) {
    const name = ownName(entry)
    const owner = manifests.find((manifest) => policiesIn(manifest).some(({ componentType }) => componentType === name))
    if (owner === undefined) continue
    const message = `plugin "${owner.name}" has a policy "${name}"; give the ${entry.kind} a name of its own.`
    faults.add('POLICY_FILE_VALUE', nameAt(entry), message)
  }
}

function inOrder(
  entries: readonly Entry[],
  own: ReadonlyMap<Entry, Policy>,
  named: ReadonlyMap<PluginEntry, NamedPlugin>,
  loaded: readonly Policy[],
): readonly Policy[] {
  const ofFile = entries.flatMap((entry) => {
    if (entry.kind !== 'plugin') return own.get(entry) ?? []
    const name = named.get(entry)?.manifest.name
    return loaded.filter(({ plugin }) => plugin === name)
  })
  return [...ofFile, ...loaded.filter((policy) => !ofFile.includes(policy))]
}
