import type { Manifest } from '../manifest/manifest.ts'
import { PluginError } from '../plugin/error.ts'

/**
 * Refuses plugins that claim the same name, the same component type, the same tool or the same protocol.
 *
 * @throws PluginError `PLUGIN_TAKEN` naming both.
 */
export function refuseConflicts(manifests: readonly Manifest[]): void {
  refuseShared(
    manifests,
    ({ name }) => [name],
    (name) => `two plugins are named "${name}"`,
    ({ file }) => file,
  )
  refuseShared(
    manifests,
    ({ components }) => components.map(({ componentType }) => componentType),
    (type) => `component type "${type}" is provided twice`,
  )
  refuseShared(
    manifests,
    ({ tools }) => tools.map(({ name }) => name),
    (name) => `tool "${name}" is provided twice`,
  )
  refuseShared(
    manifests,
    ({ components }) => components.flatMap(({ protocol }) => protocol ?? []),
    (protocol) => `protocol "${protocol}" is rendered twice`,
  )
}

function refuseShared(
  manifests: readonly Manifest[],
  claimsOf: (manifest: Manifest) => readonly string[],
  what: (claim: string) => string,
  who: (manifest: Manifest) => string = ({ name }) => `plugin "${name}"`,
): void {
  const owners = new Map<string, Manifest>()
  for (const manifest of manifests) {
    for (const claim of claimsOf(manifest)) {
      const owner = owners.get(claim)
      if (owner !== undefined) {
        throw new PluginError(
          'PLUGIN_TAKEN',
          `${what(claim)}, by ${who(owner)} and ${who(manifest)}; load one of them.`,
          { plugin: manifest.name },
        )
      }
      owners.set(claim, manifest)
    }
  }
}
