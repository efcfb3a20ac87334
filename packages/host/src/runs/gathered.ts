import type { SluiceError } from '@sluice/core'
import type { Connection } from '../store/connection.ts'
import type { Gather } from '../store/writer.ts'

/** Writes its part of a transaction, or says what stands in its way and has then written nothing. It may be called again. */
export type Part = (db: Connection) => SluiceError | undefined

interface Pending {
  readonly part: Part
  resolve(): void
  reject(error: unknown): void
}

/** Writes what comes together in one transaction: a disk takes as long for one commit as for sixteen. */
export class Gathered {
  readonly #db: Connection
  readonly #gather: Gather
  /** Told when a transaction came to nothing. */
  readonly #onFailure: () => void
  #queue: Pending[] = []

  constructor(db: Connection, gather: Gather, onFailure: () => void) {
    this.#db = db
    this.#gather = gather
    this.#onFailure = onFailure
  }

  /** Settles when it is durable. */
  write(part: Part): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#queue.push({ part, resolve, reject }) === 1) this.#gather(this.#flush)
    })
  }

  readonly #flush = (): void => this.flush()

  /** Writes what waits. */
  flush(): void {
    const batch = this.#queue
    this.#queue = []
    if (batch.length > 0) this.#commit(batch)
  }

  #commit(batch: readonly Pending[]): void {
    try {
      const refusals = this.#db.writing(() => batch.map(({ part }) => part(this.#db)))
      for (const [i, { resolve, reject }] of batch.entries()) {
        const refusal = refusals[i]
        if (refusal === undefined) resolve()
        else reject(refusal)
      }
    } catch (error) {
      this.#onFailure()
      // One of them may be what cannot be written: the others shall not suffer for it.
      if (batch.length > 1 && (error as SluiceError).code !== 'STORE_BUSY') for (const one of batch) this.#commit([one])
      else for (const { reject } of batch) reject(error)
    }
  }
}
