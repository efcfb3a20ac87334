import type { Handlers, ServeOptions } from './handlers.ts'
import type { PluginManifest } from './manifest.ts'

/** A plugin in one module: what its manifest would say, and what its program would hand to `serve`. */
export interface PluginModule extends ServeOptions {
  /** `command` is for programs only. */
  readonly manifest: Omit<PluginManifest, 'command'>
  readonly handlers?: Handlers
}

/**
 * A plugin that the operator runs in the process of the host, as the default export of the module that `--plugin` names. It
 * gives the plugin back as it is, checked by the compiler; a module may as well export the plain object.
 */
export const definePlugin = (plugin: PluginModule): PluginModule => plugin
