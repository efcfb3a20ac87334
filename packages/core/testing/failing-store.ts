import {
  type Commit,
  type Lease,
  type Line,
  MemoryStore,
  SluiceError,
  type Standing,
  type Store,
} from '../src/index.ts'

/** `before` anything of the write took place, or `after` all of it did, so that only the answer is lost. */
export type Cut = 'before' | 'after'

interface Fault {
  left: number
  readonly type: string | undefined
  readonly cut: Cut
}

/** A store in memory whose appends fail where they are told to, each fault once. */
export class FailingStore implements Store {
  /** How many appends there were. */
  appends = 0
  /** Whether it writes with a later turn of the loop, as one with a file does. */
  readonly #late: boolean
  readonly #inner = new MemoryStore()
  readonly #faults = new Set<Fault>()

  constructor({ late = false }: { late?: boolean } = {}) {
    this.#late = late
  }

  /** The `nth` append from now on fails; with `type`, the `nth` of those that hold a record of that type. */
  fail(cut: Cut, { nth = 1, type }: { nth?: number; type?: string } = {}): this {
    this.#faults.add({ left: nth, type, cut })
    return this
  }

  append(lease: Lease, commit: Commit): void | Promise<void> {
    this.appends++
    if (!this.#late) return this.#append(lease, commit)
    return new Promise((resolve) => setImmediate(resolve)).then(() => this.#append(lease, commit))
  }

  #append(lease: Lease, commit: Commit): void {
    const cut = this.#cutOf(commit)
    if (cut !== 'before') this.#inner.append(lease, commit)
    if (cut !== undefined) throw new SluiceError('STORE_FAILED', `the store failed ${cut} it wrote.`)
  }

  #cutOf({ records }: Commit): Cut | undefined {
    for (const fault of this.#faults) {
      if (fault.type !== undefined && !records.some((text) => text.includes(`"type":"${fault.type}"`))) continue
      if (--fault.left > 0) continue
      this.#faults.delete(fault)
      return fault.cut
    }
    return undefined
  }

  get kept() {
    return this.#inner.kept
  }
  acquire(line: Line, options?: { create?: boolean }) {
    return this.#inner.acquire(line, options)
  }
  renew(lease: Lease) {
    this.#inner.renew(lease)
  }
  release(lease: Lease) {
    this.#inner.release(lease)
  }
  load(line: Line) {
    return this.#inner.load(line)
  }
  read(line: Line, range?: { from?: number; to?: number }) {
    return this.#inner.read(line, range)
  }
  fork(from: Line, at: number, branch: string, standing: Standing) {
    this.#inner.fork(from, at, branch, standing)
  }
  trim(lease: Lease, before: number) {
    return this.#inner.trim(lease, before)
  }
  lines(thread?: string) {
    return this.#inner.lines(thread)
  }
  remove(thread: string) {
    return this.#inner.remove(thread)
  }
  close() {
    this.#inner.close()
  }
}
