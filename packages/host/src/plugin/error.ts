import { SluiceError } from '@sluice/core'
import { FAULT, type WireError } from '@sluice/plugin/wire'
import type { Ending } from '../child/child.ts'
import { endingText } from '../child/run-once.ts'

/** What goes wrong with a plugin: its manifest, its process, what it prints. */
export class PluginError extends SluiceError {
  override readonly name = 'PluginError'
}

/** A plugin's handler threw, or could not be found. `name` and `message` are the handler's own, for policies match on them. */
export class PluginHandlerError extends SluiceError {
  override readonly name: string

  /** @param cause what was thrown, where that was in this process. */
  constructor(plugin: string, { code, message, data }: WireError, cause?: unknown) {
    super(code === FAULT.noHandler ? 'PLUGIN_HANDLER_MISSING' : 'PLUGIN_HANDLER', message, { plugin }, cause)
    this.name = data?.name ?? 'Error'
  }
}

/** How a plugin's process ended, with what it said last. */
export function describeEnding(ending: Ending, stderr: string): string {
  const { code, error } = ending
  if (error !== undefined) return `could not be started: ${error.message}`
  const how = endingText(ending)
  if (stderr !== '') return `${how}; its stderr: ${stderr}`
  return `${how} and said nothing on stderr${code === 0 ? '; did it call serve(…)?' : ''}`
}
