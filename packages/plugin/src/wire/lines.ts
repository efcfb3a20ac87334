const NEWLINE = 10

export interface LineReaderOptions {
  /** Bytes of one line, its end not counted. */
  readonly maxBytes: number
  onLine(text: string): void
  /** Called once, at the first line that is too long; nothing is read after it. */
  onTooLong(): void
}

/**
 * Cuts a stream of bytes into lines. It looks for the end of a line in the bytes, so a character is never cut, the limit
 * holds before a line is complete, and a long line costs as much as its length.
 */
export class LineReader {
  readonly #options: LineReaderOptions
  #pieces: Buffer[] = []
  #heldBytes = 0
  #closed = false

  constructor(options: LineReaderOptions) {
    this.#options = options
  }

  push(chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      if (this.#closed || !this.#fits(end - start)) return
      const text =
        this.#pieces.length === 0 ? chunk.toString('utf8', start, end) : this.#join(chunk.subarray(start, end))
      start = end + 1
      this.#options.onLine(text)
    }
    if (start === chunk.length || this.#closed || !this.#fits(chunk.length - start)) return
    this.#pieces.push(start === 0 ? chunk : chunk.subarray(start))
    this.#heldBytes += chunk.length - start
  }

  #fits(bytes: number): boolean {
    if (this.#heldBytes + bytes <= this.#options.maxBytes) return true
    this.#closed = true
    this.#pieces = []
    this.#options.onTooLong()
    return false
  }

  #join(last: Buffer): string {
    const text = Buffer.concat([...this.#pieces, last]).toString('utf8')
    this.#pieces = []
    this.#heldBytes = 0
    return text
  }
}
