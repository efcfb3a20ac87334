import { SluiceError } from '@sluice/core'
import { FAULT, type WireError } from '@sluice/plugin/wire'
import type { Ending } from '../child/child.ts'

/** What goes wrong with a plugin: its manifest, its process, what it prints. */
export class PluginError extends SluiceError {
  override readonly name = 'PluginError'
}

/** A plugin's handler threw, or could not be found. `name` and `message` are the handler's own, for policies match on them. */
export class PluginHandlerError extends SluiceError {
  override readonly name: string

  constructor(plugin: string, { code, message, data }: WireError) {
    super(code === FAULT.noHandler ? 'PLUGIN_HANDLER_MISSING' : 'PLUGIN_HANDLER', message, { plugin })
    this.name = data?.name ?? 'Error'
  }
}

/** How a plugin's process ended, with what it said last. */
export function describeEnding({ code, signal, error }: Ending, stderr: string): string {
  if (error !== undefined) return `could not be started: ${error.message}`
  const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`
  if (stderr !== '') return `${how}; its stderr: ${stderr}`
  return `${how} and said nothing on stderr${code === 0 ? '; did it call serve(…)?' : ''}`
}
