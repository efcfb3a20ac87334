import { type JsonObject, messageOf, ownObject } from '@sluice/core'
import type { Manifest, ManifestComponent } from '../manifest/manifest.ts'
import { compileSchema } from '../manifest/schema.ts'
import { PluginError } from '../plugin/error.ts'
import type { PluginConfig } from './config-arguments.ts'

/**
 * The operator's settings of each loaded middleware, checked against its schema; `{}`, checked too, where there are none.
 *
 * @param mendOf says how settings of a type are given.
 * @throws PluginError `PLUGIN_CONFIG_TYPE` for settings of a type that no loaded middleware has, `PLUGIN_CONFIG` for ones that
 *   do not fit.
 */
export async function checkSettings(
  manifests: readonly Manifest[],
  config: PluginConfig,
  mendOf = (type: string) => `give them with --plugin-config ${type}=<json>`,
): Promise<ReadonlyMap<string, JsonObject>> {
  const policies = manifests.flatMap((manifest) =>
    manifest.components.filter(({ kind }) => kind === 'middleware').map((component) => ({ manifest, component })),
  )
  refuseUnknown(
    Object.keys(config),
    policies.map(({ component }) => component.componentType),
  )
  const settings = new Map<string, JsonObject>()
  for (const { manifest, component } of policies) {
    const { componentType } = component
    const given = Object.hasOwn(config, componentType) ? config[componentType] : {}
    settings.set(componentType, await checked(given, component, manifest.name, mendOf(componentType)))
  }
  return settings
}

function refuseUnknown(given: readonly string[], loaded: readonly string[]): void {
  const unknown = given.find((type) => !loaded.includes(type))
  if (unknown === undefined) return
  const known = loaded.length === 0 ? 'no middleware is loaded' : `loaded are: ${loaded.join(', ')}`
  throw new PluginError(
    'PLUGIN_CONFIG_TYPE',
    `there are settings for "${unknown}", which no plugin provides; ${known}.`,
  )
}

async function checked(
  given: unknown,
  { componentType, schema }: ManifestComponent,
  plugin: string,
  mend: string,
): Promise<JsonObject> {
  const what = `the settings of "${componentType}" (plugin ${plugin})`
  const fits = schema && (await compileSchema(schema, `the schema of "${componentType}" (plugin ${plugin})`))
  try {
    const settings = ownObject(given, what)
    fits?.(settings, what)
    return settings
  } catch (error) {
    throw new PluginError('PLUGIN_CONFIG', `${messageOf(error).replace(/\.$/, '')}; ${mend}.`, { plugin }, error)
  }
}
