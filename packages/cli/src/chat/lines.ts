import { createInterface, type Interface } from 'node:readline'

/** Lines that are typed, or that come out of a pipe. */
export class Lines {
  readonly #reader: Interface
  readonly #isTerminal: boolean
  readonly #come: string[] = []
  #waiting: ((line: string | undefined) => void) | undefined
  #isOver = false

  /** @param onInterrupt Ctrl+C where a terminal leaves it to its reader. */
  constructor(onInterrupt: () => void) {
    const { stdin: input, stderr: output } = process
    this.#isTerminal = input.isTTY === true && output.isTTY === true
    this.#reader = createInterface(this.#isTerminal ? { input, output, terminal: true } : { input })
    this.#reader.on('SIGINT', onInterrupt)
    this.#reader.on('line', (line) => this.#take(line))
    this.#reader.on('close', () => {
      this.#isOver = true
      this.#waiting?.(undefined)
    })
  }

  /** The next line; `undefined` when there are no more. The prompt is shown on a terminal. */
  next(prompt: string): Promise<string | undefined> {
    const line = this.#come.shift()
    if (line !== undefined || this.#isOver) return Promise.resolve(line)
    if (this.#isTerminal) {
      this.#reader.setPrompt(prompt)
      this.#reader.prompt()
    }
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }

  /** Forgets what was typed, says this, and waits on. */
  startOver(says: string): void {
    if (this.#isTerminal) for (const name of ['e', 'u']) this.#reader.write(null, { ctrl: true, name })
    process.stderr.write(`${this.#isTerminal ? '\n' : ''}${says}\n`)
    if (this.#isTerminal) this.#reader.prompt()
  }

  close(): void {
    this.#reader.close()
  }

  #take(line: string): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting === undefined) this.#come.push(line)
    else waiting(line)
  }
}
