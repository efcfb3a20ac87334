import { type KeptOptions, messageOf, validate } from '@sluice/core'
import { jsonSchema } from '@sluice/flow'
import type { ManifestComponent } from '../manifest/manifest.ts'
import { PluginError } from '../plugin/error.ts'

/**
 * What a policy keeps, as its manifest declares it.
 *
 * @throws SluiceError `JSON_SCHEMA` for a schema that is none; PluginError `PLUGIN_KEPT` for one that `{}` does not fit, for
 *   that is what every policy starts from.
 */
export async function keptOf(
  { componentType, kept }: ManifestComponent,
  plugin: string,
): Promise<KeptOptions | undefined> {
  if (kept === undefined) return undefined
  const what = `what "${componentType}" (plugin ${plugin}) keeps`
  const schema = await jsonSchema(kept.schema, `the schema of ${what}`)
  try {
    validate(schema, {}, `${what} at first, {},`)
  } catch (error) {
    const mend = 'give each required member a default in kept.schema of the manifest'
    throw new PluginError('PLUGIN_KEPT', `${messageOf(error)}; ${mend}.`, { plugin }, error)
  }
  return { scope: kept.scope, schema }
}
