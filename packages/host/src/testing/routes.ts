import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { LoadOptions } from '../plugins/load.ts'
import { loadPlugins } from '../plugins/load.ts'
import type { Plugins } from '../plugins/plugins.ts'
import { folderOf } from './folder.ts'

/** Where the handlers of a plugin may run. What holds for one holds for the other. */
export const ROUTES = ['in process', 'over the wire'] as const
export type Route = (typeof ROUTES)[number]

/** A plugin as source text: what it hands to `serve`, and what its manifest says. */
export interface RoutedPlugin {
  /** An object. */
  readonly handlers: string
  /** An object, the second argument of `serve`. */
  readonly options?: string
  readonly manifest: object
  /** What stands before the handlers in their module. */
  readonly before?: string
}

/**
 * What `--plugin` names to have this plugin by this route.
 *
 * @param place makes its folder, with these files in it.
 */
export function pluginFile(
  route: Route,
  { handlers, options = '{}', manifest, before = '' }: RoutedPlugin,
  place: typeof folderOf = folderOf,
): string {
  const content = JSON.stringify({ name: 'tested', version: '1.0.0', capabilities: [], ...manifest })
  if (route === 'in process') {
    const module = `${before}\nexport default { ...${options}, manifest: ${content}, handlers: ${handlers} }`
    return join(place({ 'tested.mjs': module }), 'tested.mjs')
  }
  const folder = place({ 'tested.json': content, 'tested.mjs': `${before}\nserve(${handlers}, ${options})` })
  return join(folder, 'tested.json')
}

/** A plugin of this test, loaded by this route and closed after it; warnings are gathered. */
export async function loadBy(
  route: Route,
  plugin: RoutedPlugin,
  options: LoadOptions = {},
): Promise<Plugins & { readonly warnings: readonly string[] }> {
  const warnings: string[] = []
  const plugins = await loadPlugins([pluginFile(route, plugin)], {
    onWarning: (message) => warnings.push(message),
    ...options,
  })
  onTestFinished(() => plugins.close())
  return Object.assign(plugins, { warnings })
}
