import { readDiscovered } from '../manifest/check.ts'
import { Faults } from '../manifest/faults.ts'
import type { Manifest, ManifestTool } from '../manifest/manifest.ts'
import { withPrograms } from '../manifest/read.ts'
import { callPlugin } from '../plugin/direct.ts'
import { PluginError } from '../plugin/error.ts'
import type { LoadedPlugin } from './plugins.ts'

/**
 * Refuses plugins that want to be asked for their tools, before anything is started for them, unless the operator allows it.
 *
 * @throws PluginError `PLUGIN_DISCOVERY`.
 */
export function refuseDiscovery(manifests: readonly Manifest[], allowed: boolean): void {
  const asking = allowed ? undefined : manifests.find(({ discoverTools }) => discoverTools)
  if (asking === undefined) return
  throw new PluginError(
    'PLUGIN_DISCOVERY',
    `plugin "${asking.name}" says what tools it has only when it is asked, which starts it; allow that with --discover-tools.`,
    { plugin: asking.name },
  )
}

/**
 * Asks a plugin whose manifest says so what else it serves, once. Its answer is checked like what a manifest declares.
 *
 * @throws PluginError `PLUGIN_DISCOVERY` for tools that are wrong; what the plugin failed with.
 */
export async function discoverTools(
  { manifest, peer }: LoadedPlugin,
  silenceMs: number,
): Promise<readonly ManifestTool[]> {
  if (!manifest.discoverTools || peer === undefined) return []
  const { name: plugin, folder } = manifest
  const ctx = { signal: new AbortController().signal }
  const answer = await callPlugin({ plugin, peer, method: 'listTools', params: {}, ctx, silenceMs })
  const faults = new Faults()
  const found = await withPrograms(readDiscovered(answer, manifest, faults), folder, faults)
  if (faults.list.length === 0) return found
  const why = faults.list.map((fault) => `\n  - ${fault}`).join('')
  throw new PluginError('PLUGIN_DISCOVERY', `the tools that plugin "${plugin}" tells of are wrong:${why}`, { plugin })
}
