/** Bytes of a program's stderr that an error quotes. */
const MAX_BYTES = 4096

/** What a program said last: errors stand at the end. */
export class LastWords {
  #tail = Buffer.alloc(0)

  push(chunk: Buffer): void {
    this.#tail = Buffer.concat([this.#tail, chunk.subarray(-MAX_BYTES)]).subarray(-MAX_BYTES)
  }

  get text(): string {
    return this.#tail.toString().trim()
  }
}
