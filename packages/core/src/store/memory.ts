import { MemoryKept } from '../seams/kept-of-principals.ts'
import {
  branchExists,
  busyLine,
  type Commit,
  type Lease,
  type Line,
  type LineSummary,
  type Loaded,
  lostLease,
  MAIN,
  notInHistory,
  type Standing,
  type Store,
  type StoredRecord,
  unknownLine,
  wrongSequence,
} from './store.ts'

/** One line. An idle one holds its texts and little else. */
interface Kept {
  readonly origin: { readonly line: Kept; readonly branch: string; readonly at: number } | undefined
  /** The sequence number before that of the first text. */
  base: number
  readonly texts: string[]
  /** Sequence numbers of snapshots, ascending; absent until there is one. */
  snapshots: number[] | undefined
  beside: Map<string, string> | undefined
  standing: Standing | undefined
  epoch: number
  held: boolean
}

/** A store in the process's memory. It keeps texts, as a file would, so that nobody shares an object with it. */
export class MemoryStore implements Store {
  readonly kept = new MemoryKept()
  readonly #threads = new Map<string, Map<string, Kept>>()
  /** One count for all lines, so that a lease on a removed thread is none on another of its name. */
  #epoch = 0

  acquire(line: Line, { create = false }: { create?: boolean } = {}): Lease {
    let kept = this.#threads.get(line.thread)?.get(line.branch)
    if (kept === undefined) {
      if (!create || line.branch !== MAIN) throw unknownLine(line)
      kept = emptyLine(undefined)
      this.#threads.set(line.thread, new Map([[MAIN, kept]]))
    } else if (!create && headOf(kept) === 0) throw unknownLine(line)
    if (kept.held) throw busyLine(line)
    kept.held = true
    kept.epoch = ++this.#epoch
    return { thread: line.thread, branch: line.branch, epoch: kept.epoch }
  }

  renew(lease: Lease): void {
    this.#leased(lease)
  }

  release(lease: Lease): void {
    const branches = this.#threads.get(lease.thread)
    const kept = branches?.get(lease.branch)
    if (kept?.epoch !== lease.epoch) return
    kept.held = false
    // Nothing was written to it: it never was. Only a main line can be like that, and it has no forks then.
    if (headOf(kept) === 0) this.#threads.delete(lease.thread)
  }

  append(lease: Lease, { seq, records, snapshot, beside, standing, release }: Commit): void {
    const kept = this.#leased(lease)
    const next = headOf(kept) + 1
    if (seq !== next) throw wrongSequence(lease, seq, next)
    for (const text of records) kept.texts.push(text)
    if (snapshot) {
      kept.snapshots ??= []
      kept.snapshots.push(seq)
    }
    if (beside !== undefined) putBeside(kept, beside)
    if (standing !== undefined) kept.standing = standing
    if (release) kept.held = false
  }

  load(line: Line): Loaded | undefined {
    const kept = this.#threads.get(line.thread)?.get(line.branch)
    const head = kept === undefined ? 0 : headOf(kept)
    if (kept === undefined || head === 0) return undefined
    const from = startOf(kept, head)
    return { head, from, records: textsOf(kept, from, head), beside: [...(kept.beside ?? [])] }
  }

  read(line: Line, { from = 1, to = Number.POSITIVE_INFINITY } = {}): readonly StoredRecord[] {
    const kept = this.#kept(line)
    const last = Math.min(to, headOf(kept))
    const texts = textsOf(kept, from, last)
    return texts.map((text, i) => ({ seq: last - texts.length + 1 + i, text }))
  }

  fork(from: Line, at: number, branch: string, standing: Standing): void {
    const line = this.#kept(from)
    const head = headOf(line)
    if (!(Number.isInteger(at) && at >= 1 && at <= head && holds(line, startOf(line, at))))
      throw notInHistory(from, at, head)
    const branches = this.#threads.get(from.thread) as Map<string, Kept>
    if (branches.has(branch)) throw branchExists({ thread: from.thread, branch })
    const fork = emptyLine({ line, branch: from.branch, at })
    if (at === head && line.beside !== undefined) fork.beside = new Map(line.beside)
    fork.standing = standing
    branches.set(branch, fork)
  }

  trim(lease: Lease, before: number): number {
    const kept = this.#leased(lease)
    const branches = [...(this.#threads.get(lease.thread)?.values() ?? [])]
    const needed = branches.filter((line) => descends(line, kept)).map((line) => startOf(line, headOf(line)))
    const drop = Math.max(0, Math.min(before, ...needed) - kept.base - 1)
    kept.texts.splice(0, drop)
    kept.base += drop
    return drop
  }

  lines(thread?: string): readonly LineSummary[] {
    const found: LineSummary[] = []
    for (const [name, branches] of this.#threads) {
      if (thread !== undefined && name !== thread) continue
      for (const [branch, kept] of branches) {
        const { standing, origin, held } = kept
        if (standing === undefined) continue
        const forkedFrom = origin === undefined ? undefined : { branch: origin.branch, at: origin.at }
        found.push({ thread: name, branch, ...standing, head: headOf(kept), forkedFrom, busy: held })
      }
    }
    return found.sort((a, b) => b.at - a.at)
  }

  remove(thread: string): boolean {
    const branches = this.#threads.get(thread)
    for (const [branch, kept] of branches ?? []) if (kept.held) throw busyLine({ thread, branch })
    return this.#threads.delete(thread)
  }

  close(): void {}

  #kept(line: Line): Kept {
    const kept = this.#threads.get(line.thread)?.get(line.branch)
    if (kept === undefined || headOf(kept) === 0) throw unknownLine(line)
    return kept
  }

  #leased(lease: Lease): Kept {
    const kept = this.#threads.get(lease.thread)?.get(lease.branch)
    if (kept === undefined || kept.epoch !== lease.epoch || !kept.held) throw lostLease(lease)
    return kept
  }
}

const emptyLine = (origin: Kept['origin']): Kept => ({
  origin,
  base: origin?.at ?? 0,
  texts: [],
  snapshots: undefined,
  beside: undefined,
  standing: undefined,
  epoch: 0,
  held: false,
})

const headOf = ({ base, texts }: Kept): number => base + texts.length

/** The sequence number from which records are needed to stand at `at`: its last snapshot, the origin's before a fork, or the beginning. */
function startOf({ snapshots, origin }: Kept, at: number): number {
  const own = snapshots?.findLast((seq) => seq <= at)
  if (own !== undefined) return own
  return origin === undefined ? 1 : startOf(origin.line, Math.min(at, origin.at))
}

const descends = (line: Kept, from: Kept): boolean =>
  line === from || (line.origin !== undefined && descends(line.origin.line, from))

/** Whether a record is still there. */
const holds = ({ base, origin }: Kept, seq: number): boolean =>
  origin === undefined || seq > origin.at ? seq > base : holds(origin.line, seq)

function textsOf(kept: Kept, from: number, to: number): readonly string[] {
  const { base, texts, origin } = kept
  const own = texts.slice(Math.max(0, from - base - 1), Math.max(0, to - base))
  if (origin === undefined || from > origin.at) return own
  return [...textsOf(origin.line, from, Math.min(to, origin.at)), ...own]
}

function putBeside(kept: Kept, beside: NonNullable<Commit['beside']>): void {
  if (kept.beside === undefined) {
    if (beside.length === 0) return
    kept.beside = new Map()
  }
  for (const [key, text] of beside) {
    if (text === null) kept.beside.delete(key)
    else kept.beside.set(key, text)
  }
  if (kept.beside.size === 0) kept.beside = undefined
}
