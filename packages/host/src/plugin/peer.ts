import type { Asker, Call } from './call.ts'

/** Where the handlers of a plugin run: in a process of its own, or in this one. */
export interface Peer {
  /**
   * Asks the plugin for something.
   *
   * @param params JSON.
   * @throws PluginError when it cannot even be asked.
   */
  ask(method: string, params: object, asker: Asker): Call
  /** Makes sure that it is there: what it says of itself, as it answers `init`. @throws PluginError when it ends before. */
  start(): Promise<unknown>
  /** Whether no call will be answered any more: it died too often, or speaks another version. */
  readonly isLost: boolean
  /** Ends what there is to end; a call made later is refused. */
  close(): Promise<void>
}
