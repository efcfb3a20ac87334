import { stat } from 'node:fs/promises'
import { dirname, extname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isObject, messageOf, own } from '@sluice/core'
import type { Served } from '@sluice/plugin/local'
import { PluginError } from '../plugin/error.ts'
import { readContent } from './check.ts'
import { Faults } from './faults.ts'
import type { Manifest } from './manifest.ts'
import { refuseManifest, withPrograms } from './read.ts'

const EXTENSIONS = ['.mjs', '.js', '.cjs']

/** Whether a plugin is named by its module, to run in this process, and not by a manifest. */
export const isModule = (file: string): boolean => EXTENSIONS.includes(extname(file))

/** What a module hands over beside its manifest. */
export interface ModuleHandlers extends Served {
  readonly shutdown: (() => unknown) | undefined
}

/**
 * Imports a plugin that is to run in this process, and checks its manifest as that of any other. The module's own code runs.
 *
 * @param file an absolute path.
 * @throws PluginError `PLUGIN_MODULE` when it cannot be imported or exports no plugin, `PLUGIN_MANIFEST` with all that is wrong
 *   with what it exports.
 */
export async function readModule(file: string): Promise<Manifest> {
  const { manifest: declared, handlers = {}, tools = {}, listTools, shutdown } = await pluginIn(file)
  const faults = new Faults()
  for (const [name, holder] of Object.entries({ handlers, tools })) {
    if (!isObject(holder)) faults.add(`"${name}" beside the manifest`, 'must be an object')
  }
  for (const [name, hook] of Object.entries({ listTools, shutdown })) {
    if (hook !== undefined && typeof hook !== 'function') faults.add(`"${name}"`, 'must be a function')
  }
  const content = readContent(declared, faults)
  if (content?.command !== undefined) faults.add('command', 'is for a program; a module runs in this process')
  const folder = dirname(file)
  const located = content && (await withPrograms(content.tools, folder, faults))
  if (content === undefined || located === undefined || faults.list.length > 0) throw refuseManifest(file, faults.list)
  const module = { handlers, tools, listTools, shutdown } as ModuleHandlers
  return { ...content, tools: located, file, folder, warnings: faults.warnings, module }
}

/** The default export. A program that belongs to a manifest is not run here: it would take this process's stdin for its wire. */
async function pluginIn(file: string): Promise<{ readonly [name: string]: unknown }> {
  const refuse = (why: string, cause?: unknown) =>
    new PluginError('PLUGIN_MODULE', `plugin module ${file} ${why}.`, { file }, cause)
  const exists = (path: string) =>
    stat(path).then(
      () => true,
      () => false,
    )
  if (!(await exists(file))) throw refuse('does not exist')
  const manifest = file.replace(/\.[^.]+$/, '.json')
  if (await exists(manifest))
    throw refuse(`is the program of ${manifest}; name that, or give the module a name of its own`)
  let exported: { readonly default?: unknown }
  try {
    exported = await import(pathToFileURL(file).href)
  } catch (error) {
    throw refuse(`cannot be imported: ${messageOf(error)}`, error)
  }
  const plugin = exported.default
  if (!isObject(plugin) || !isObject(plugin.manifest)) {
    throw refuse('exports no plugin; write export default definePlugin({ manifest, handlers })')
  }
  try {
    return { ...plugin, manifest: own(plugin.manifest, 'its manifest') }
  } catch (error) {
    throw refuse(`exports a plugin with a manifest that no file could hold: ${messageOf(error)}`)
  }
}
