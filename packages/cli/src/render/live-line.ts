import type { RunEvent } from '@sluice/core'
import { escapeControls } from './escape.ts'

export interface LiveLineOptions {
  readonly write: (text: string) => void
  /** Milliseconds. */
  readonly now: () => number
  /** How wide the terminal is; the line is cut so that it never wraps. */
  readonly columns: () => number
}

const CLEAR = '\r\u001b[2K'

/** The last line of a terminal while a run goes on: which nodes are running, and for how long. Other lines go above it. */
export class LiveLine {
  readonly #options: LiveLineOptions
  readonly #running = new Map<string, { readonly name: string; readonly since: number }>()
  #drawn = false
  /** Whether a text above has not ended its line. */
  #midLine = false

  constructor(options: LiveLineOptions) {
    this.#options = options
  }

  /** Takes notice of what runs. */
  follow(event: RunEvent): void {
    if (event.type === 'run_end' && event.path.length === 1) this.#running.clear()
    if (event.type !== 'node_start' && event.type !== 'node_complete' && event.type !== 'node_error') return
    const key = [...event.path, event.nodeName].join('\u0000')
    if (event.type === 'node_start') this.#running.set(key, { name: event.nodeName, since: this.#options.now() })
    else this.#running.delete(key)
  }

  /** Writes what is to stay; a text that does not end its line keeps the live line away until one does. */
  write(text: string): void {
    this.#options.write(this.#drawn ? CLEAR + text : text)
    this.#drawn = false
    this.#midLine = !text.endsWith('\n')
    this.draw()
  }

  /** Draws the line anew, with the time as it is now. */
  draw(): void {
    const text = this.#midLine ? '' : this.#text()
    if (text === '' && !this.#drawn) return
    this.#options.write(CLEAR + text)
    this.#drawn = text !== ''
  }

  /** Takes the line away. */
  clear(): void {
    this.#running.clear()
    this.draw()
  }

  #text(): string {
    const now = this.#options.now()
    const parts = [...this.#running.values()].map(
      ({ name, since }) => `${escapeControls(name)} ${Math.floor((now - since) / 1_000)} s`,
    )
    return parts.length === 0 ? '' : `  … ${parts.join(', ')}`.slice(0, Math.max(0, this.#options.columns() - 1))
  }
}
