import { resolve } from 'node:path'
import {
  type ChatModel,
  DEFAULT_POLICY_TIMEOUT_MS,
  type Half,
  isObject,
  type JsonObject,
  type Policy,
  type PolicyRules,
  type Tool,
} from '@sluice/core'
import type { Manifest, ManifestTool } from '../manifest/manifest.ts'
import { isModule, readModule } from '../manifest/module.ts'
import { readManifest } from '../manifest/read.ts'
import { compileSchema } from '../manifest/schema.ts'
import { SILENCE_MS } from '../plugin/direct.ts'
import { LocalPlugin } from '../plugin/local.ts'
import { localPolicy } from '../plugin/local-policy.ts'
import type { Peer } from '../plugin/peer.ts'
import { RemotePolicy } from '../plugin/policy.ts'
import { PluginProcess } from '../plugin/process.ts'
import { declaredTool, type PluginToolOptions, remoteTool } from '../plugin/tool.ts'
import { runProgram } from '../tools/program.ts'
import type { PluginConfig } from './config-arguments.ts'
import { refuseConflicts } from './conflicts.ts'
import { discoverTools, refuseDiscovery } from './discover.ts'
import { keptOf } from './kept.ts'
import { type LoadedPlugin, Plugins } from './plugins.ts'
import { checkSettings } from './settings.ts'

export interface LoadOptions {
  /** Settings by component type; each type must be a loaded middleware. */
  readonly config?: PluginConfig
  /** The whole environment of the plugins; empty when nothing is named. */
  readonly env?: Readonly<Record<string, string>>
  /** What relative paths start from. */
  readonly cwd?: string
  /** Milliseconds a policy may take to answer, the time in its own hands. */
  readonly timeoutMs?: number
  /** Milliseconds a process may take to start, which are no policy's time; 5,000 unless said. */
  readonly startMs?: number
  /** Milliseconds a plugin that executes, transforms, chats or runs a tool may say nothing. */
  readonly silenceMs?: number
  /** Whether plugins whose manifest says so are started at once and asked for their tools. */
  readonly discoverTools?: boolean
  /** What the operator says about each plugin and its policies; without it, what stands here holds for all. */
  readonly installed?: (manifest: Manifest) => Installation
  /** The model that an `llm_config` in a policy's settings means; without it, policies cannot call models. */
  readonly model?: (llmConfig: JsonObject) => ChatModel
  /** URL of the module that gives plugin programs their global `serve`, where the installed one cannot be found. */
  readonly runtime?: string
  /** Told what a plugin does wrong that fails no call; without it, Node's own warnings are used. */
  readonly onWarning?: (message: string) => void
  /** Given what plugins write to stderr. */
  readonly onStderr?: (plugin: string, text: string) => void
}

/** How one plugin is installed. */
export interface Installation {
  /** The whole environment of its process. */
  readonly env: Readonly<Record<string, string>>
  /** What holds for its policies. */
  readonly rules: PolicyRules & { readonly timeoutMs?: number }
}

/**
 * Loads plugins: of a manifest, to run in a process of its own, or of a module, to run in this one. Everything is checked, and
 * nothing is started: a process starts when it is first asked. Only a plugin that is to be asked for its tools is started here.
 *
 * @param paths `.json` manifests and `.mjs`, `.js` or `.cjs` modules, in the order in which their policies are consulted.
 * @throws PluginError for whatever is wrong with a manifest, between manifests, or with the settings.
 */
export async function loadPlugins(paths: readonly string[], options: LoadOptions = {}): Promise<Plugins> {
  const read = await Promise.allSettled(paths.map((path) => readPlugin(path, options)))
  const manifests = read.map((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
  return loadManifests(manifests, options)
}

/** Reads what a plugin says of itself. @throws PluginError for whatever is wrong with it. */
export function readPlugin(path: string, { cwd = process.cwd(), runtime }: LoadOptions): Promise<Manifest> {
  const file = resolve(cwd, path)
  if (isModule(file)) return readModule(file)
  return readManifest(file, () => runtime ?? import.meta.resolve('@sluice/plugin/global'))
}

/** Loads plugins whose manifests are read; throws like {@link loadPlugins}. */
export async function loadManifests(manifests: readonly Manifest[], options: LoadOptions = {}): Promise<Plugins> {
  const { config = {}, silenceMs = SILENCE_MS, onWarning = warnOfProcess } = options
  refuseConflicts(manifests)
  refuseDiscovery(manifests, options.discoverTools ?? false)
  for (const { file, warnings } of manifests)
    for (const warning of warnings) onWarning(`plugin manifest ${file}: ${warning}`)
  const settings = await checkSettings(manifests, config)
  const loaded = manifests.map((manifest) => ({ manifest, peer: peerOf(manifest, options) }))
  try {
    const declared = await Promise.all(
      loaded.map(async (plugin) => [...plugin.manifest.tools, ...(await discoverTools(plugin, silenceMs))]),
    )
    refuseConflicts(manifests.map((manifest, i) => ({ ...manifest, tools: declared[i] ?? [] })))
    const policies = await Promise.all(loaded.map((plugin) => policiesOf(plugin, settings, options)))
    const tools = await Promise.all(loaded.map((plugin, i) => toolsOf(plugin, declared[i] ?? [], options)))
    return new Plugins({
      loaded,
      policies: policies.flat(),
      tools: tools.flat(),
      shadowing: new Set(declared.flat().flatMap((tool) => (tool.shadows ? tool.name : []))),
      silenceMs,
    })
  } catch (error) {
    await Promise.all(loaded.map(({ peer }) => peer?.close()))
    throw error
  }
}

const warnOfProcess = (message: string) => process.emitWarning(message)

const environmentOf = (manifest: Manifest, { installed, env = {} }: LoadOptions) => installed?.(manifest).env ?? env

function peerOf(manifest: Manifest, options: LoadOptions): Peer | undefined {
  const { name, folder, start, module, capabilities } = manifest
  const { startMs, onWarning = warnOfProcess, onStderr } = options
  if (module !== undefined) {
    const warn = (message: string) => onWarning(`plugin "${name}" ${message}.`)
    return new LocalPlugin({ plugin: name, served: module, shutdown: module.shutdown, capabilities, warn })
  }
  if (start === undefined) return undefined
  const env = environmentOf(manifest, options)
  return new PluginProcess({
    plugin: name,
    program: { command: start, cwd: folder, env },
    capabilities,
    startMs,
    warn: onWarning,
    say: (text) => onStderr?.(name, text),
  })
}

async function policiesOf(
  { manifest, peer }: LoadedPlugin,
  settings: ReadonlyMap<string, JsonObject>,
  { timeoutMs = DEFAULT_POLICY_TIMEOUT_MS, model, installed }: LoadOptions,
): Promise<readonly Policy[]> {
  const rules = { version: manifest.version, ...installed?.(manifest).rules }
  const policies: Policy[] = []
  for (const declared of manifest.components) {
    const { componentType, seams, stream } = declared
    if (seams === undefined) continue
    const component = settings.get(componentType) ?? {}
    const { llm_config } = component
    const made = {
      name: componentType,
      plugin: manifest.name,
      seams: seams as { readonly [seam: string]: readonly Half[] },
      component,
      timeoutMs,
      ...rules,
      ...(typeof stream === 'string' && { stream }),
      ...(isObject(llm_config) && model !== undefined && { model: model(llm_config as JsonObject) }),
      kept: await keptOf(declared, manifest.name),
    }
    if (peer instanceof PluginProcess) policies.push(new RemotePolicy({ ...made, process: peer }))
    else if (peer instanceof LocalPlugin) policies.push(localPolicy(peer, made))
  }
  return policies
}

function toolsOf(
  { manifest, peer }: LoadedPlugin,
  tools: readonly ManifestTool[],
  options: LoadOptions,
): Promise<readonly Tool[]> {
  const { name: plugin, folder } = manifest
  const { silenceMs = SILENCE_MS, onStderr } = options
  const env = environmentOf(manifest, options)
  return Promise.all(
    tools.map(async (declared): Promise<Tool> => {
      const made: PluginToolOptions = {
        declared,
        fitsInput: await compiled(declared, 'inputSchema', plugin),
        fitsOutput: await compiled(declared, 'outputSchema', plugin),
        say: (text) => onStderr?.(plugin, text),
      }
      const { componentType, path, name } = declared
      if (path === undefined && peer !== undefined) return remoteTool({ plugin, peer, componentType, silenceMs }, made)
      const program = { command: [path ?? ''], cwd: folder, env }
      return { ...declaredTool(plugin, made), run: (args, { signal }) => runProgram(name, program, args, signal) }
    }),
  )
}

async function compiled(tool: ManifestTool, member: 'inputSchema' | 'outputSchema', plugin: string) {
  const schema = tool[member]
  return schema && compileSchema(schema, `the ${member} of tool "${tool.name}" (plugin ${plugin})`)
}
