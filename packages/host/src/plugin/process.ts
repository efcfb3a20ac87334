import type { Program } from '../child/child.ts'
import type { Asker, Call } from './call.ts'
import { Connection } from './connection.ts'
import { PluginError } from './error.ts'
import type { Peer } from './peer.ts'
import { textOf } from './text.ts'

/** Deaths in a row without an answer between them; then the plugin is not started again. */
const MAX_DEATHS = 5
/** Warnings about one plugin; what it does wrong after them is not told any more. */
const MAX_WARNINGS = 100

export interface PluginProcessOptions {
  readonly plugin: string
  readonly program: Program
  readonly capabilities: readonly string[]
  /** Milliseconds that a process may take to start; 5,000 unless said. */
  readonly startMs?: number
  warn(message: string): void
  say(text: string): void
}

/**
 * A plugin's process, whichever that is at the moment: it starts at the first call, again at the call after it died, and is
 * replaced when it leaves too much unanswered.
 */
export class PluginProcess implements Peer {
  readonly #options: PluginProcessOptions
  readonly #living = new Set<Connection>()
  #current: Connection | undefined
  #deaths = 0
  #warnings = 0
  #isClosed = false

  constructor(options: PluginProcessOptions) {
    this.#options = options
  }

  ask(method: string, params: object, asker: Asker): Call {
    return this.call(method, textOf(params), asker)
  }

  /**
   * Asks the plugin.
   *
   * @param params JSON text.
   * @throws PluginError when the call cannot even be sent.
   */
  call(method: string, params: string, asker: Asker): Call {
    return this.#connection().call(method, params, asker)
  }

  /** Starts the process, if it is not there, and waits for what it answers to `init`. @throws PluginError when it ends before. */
  async start(): Promise<unknown> {
    return this.#connection().greeted
  }

  get isLost(): boolean {
    return this.#deaths >= MAX_DEATHS || this.#current?.failure?.code === 'PLUGIN_PROTOCOL'
  }

  /** Ends every process of this plugin; a call made later is refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#living].map((connection) => connection.stop()))
  }

  #connection(): Connection {
    if (this.#current?.isOpen) return this.#current
    const { plugin, program, capabilities, startMs, say } = this.#options
    if (this.#isClosed) throw this.#error('PLUGIN_CLOSED', 'was closed')
    const failure = this.#current?.failure
    if (failure?.code === 'PLUGIN_PROTOCOL') throw failure
    if (this.#deaths >= MAX_DEATHS) {
      throw this.#error(
        'PLUGIN_DEAD',
        `died ${MAX_DEATHS} times in a row and is not started again: ${failure?.message}`,
      )
    }
    this.#current = new Connection({
      plugin,
      program,
      capabilities,
      startMs,
      say,
      warn: (message) => this.#warn(message),
      onEnd: (connection, death) => this.#ended(connection, death),
    })
    this.#living.add(this.#current)
    return this.#current
  }

  #ended(connection: Connection, death: PluginError | undefined): void {
    this.#living.delete(connection)
    if (connection.hasAnswered) this.#deaths = 0
    else if (death !== undefined) this.#deaths++
  }

  #warn(message: string): void {
    if (++this.#warnings <= MAX_WARNINGS) this.#options.warn(`plugin "${this.#options.plugin}" ${message}.`)
  }

  #error(code: string, why: string): PluginError {
    const { plugin } = this.#options
    return new PluginError(code, `plugin "${plugin}" ${why}`, { plugin })
  }
}
