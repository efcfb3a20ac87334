import { readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf } from '@sluice/core'
import { PluginError } from '../plugin/error.ts'
import { isWithin } from '../plugin/message.ts'
import { readContent } from './check.ts'
import { startOf, toolProgram } from './entry.ts'
import { Faults } from './faults.ts'
import type { Manifest, ManifestContent, ManifestTool } from './manifest.ts'

const MAX_BYTES = 1024 * 1024
const MAX_LEVELS = 128

/**
 * Reads and checks a manifest file; nothing is started.
 *
 * @param file an absolute path.
 * @param runtime the URL of the module that gives a plugin its global `serve`.
 * @throws PluginError `PLUGIN_MANIFEST_FILE` when there is no manifest to read, `PLUGIN_MANIFEST` with all that is wrong with
 *   it.
 */
export async function readManifest(file: string, runtime: () => string): Promise<Manifest> {
  const faults = new Faults()
  const content = readContent(await readJson(file), faults)
  const manifest = content && (await locate(content, file, runtime, faults))
  if (manifest === undefined || faults.list.length > 0) throw refuseManifest(file, faults.list)
  return manifest
}

async function readJson(file: string): Promise<unknown> {
  const refuseFile = (why: string) =>
    new PluginError('PLUGIN_MANIFEST_FILE', `plugin manifest ${file} ${why}.`, { file })
  if (!file.endsWith('.json'))
    throw refuseFile('is no .json file, and no .mjs, .js or .cjs module; name the manifest of a plugin, or its module')
  const found = await stat(file).catch((error) => {
    throw refuseFile(error.code === 'ENOENT' ? 'does not exist' : `cannot be read: ${messageOf(error)}`)
  })
  if (!found.isFile()) throw refuseFile(`is ${found.isDirectory() ? 'a folder' : 'no file'}; name the manifest in it`)
  if (found.size > MAX_BYTES) throw refuseFile(`has ${found.size} bytes; ${MAX_BYTES} is the most`)
  let content: unknown
  try {
    content = JSON.parse(await readFile(file, 'utf8'))
  } catch (error) {
    throw refuseFile(`is not JSON: ${messageOf(error)}`)
  }
  if (!isWithin(content, MAX_LEVELS)) throw refuseFile(`is nested deeper than ${MAX_LEVELS} levels`)
  return content
}

/** Finds the files that a manifest speaks of. */
async function locate(
  content: ManifestContent,
  file: string,
  runtime: () => string,
  faults: Faults,
): Promise<Manifest> {
  const folder = dirname(file)
  const tools = await withPrograms(content.tools, folder, faults)
  const { warnings } = faults
  if (!needsProgram(content)) return { ...content, tools, file, folder, warnings }
  const start = await startOf({ file, folder, command: content.command }, runtime, faults)
  return { ...content, tools, file, folder, warnings, start }
}

/** Nobody asks anything of a plugin whose components are read by no one else and whose tools are programs. */
const needsProgram = ({ components, tools, discoverTools }: ManifestContent) =>
  discoverTools ||
  components.some(({ kind }) => kind !== 'component') ||
  tools.some(({ componentType }) => componentType !== undefined)

/** Tools with the path of each program checked and made absolute. */
export const withPrograms = (
  tools: readonly ManifestTool[],
  folder: string,
  faults: Faults,
): Promise<readonly ManifestTool[]> =>
  Promise.all(
    tools.map(async (tool, i) =>
      tool.path === undefined
        ? tool
        : { ...tool, path: await toolProgram(tool.path, folder, `tools[${i}].path`, faults) },
    ),
  )

export function refuseManifest(file: string, faults: readonly string[]): PluginError {
  const message =
    faults.length === 1
      ? `plugin manifest ${file}: ${faults[0]}.`
      : `plugin manifest ${file} has ${faults.length} faults:${faults.map((fault) => `\n  - ${fault}`).join('')}`
  return new PluginError('PLUGIN_MANIFEST', message, { file })
}
