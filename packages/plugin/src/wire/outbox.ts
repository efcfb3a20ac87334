/** Gathers lines and writes them in one piece before control goes back to the event loop. */
export class Outbox {
  readonly #write: (text: string) => void
  #text = ''

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  /** @param line ends with a newline. */
  send(line: string): void {
    if (this.#text === '') queueMicrotask(this.flush)
    this.#text += line
  }

  readonly flush = (): void => {
    const text = this.#text
    this.#text = ''
    if (text !== '') this.#write(text)
  }
}
