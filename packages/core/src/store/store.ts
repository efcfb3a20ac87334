import { SluiceError } from '../errors/error.ts'
import type { KeptStore } from '../seams/kept-of-principals.ts'

/** How a run ended, or that it waits. The only four, everywhere. */
export type Status = 'completed' | 'paused' | 'failed' | 'cancelled'

/** A value, or a promise of it: a store in memory answers at once. */
export type Awaitable<Value> = Value | Promise<Value>

/** One line of history: a thread's main line, or a fork of it. */
export interface Line {
  readonly thread: string
  readonly branch: string
}

/** The right to write to a line. Whoever takes it next gets a higher epoch, and writes under the old one are refused. */
export interface Lease extends Line {
  readonly epoch: number
}

/** What a list of threads shows of a line, as its last run left it. */
export interface Standing {
  readonly graph: string
  /** Absent while a run is under way, and when one was cut off. */
  readonly status?: Status
  /** The open asks: JSON text of a list. */
  readonly asks: string
  /** Milliseconds since 1970. */
  readonly at: number
}

/** What is written at once, all of it or nothing. */
export interface Commit {
  /** The sequence number of the first record: one more than the line's last. */
  readonly seq: number
  /** JSON texts. */
  readonly records: readonly string[]
  /** Whether the first record holds all that is needed to go on, so that nothing before it has to be read. */
  readonly snapshot?: boolean
  /** Entries that lie beside the log until the call they belong to is settled: a text puts one there, `null` takes it away. */
  readonly beside?: readonly (readonly [key: string, text: string | null])[]
  readonly standing?: Standing
  /** Gives the lease back in the same write. */
  readonly release?: boolean
}

/** A line as it is read to go on: the records from its last snapshot on, and what lies beside them. */
export interface Loaded {
  /** The sequence number of the last record. */
  readonly head: number
  /** The sequence number of the first record that is here. */
  readonly from: number
  readonly records: readonly string[]
  readonly beside: readonly (readonly [key: string, text: string])[]
}

export interface StoredRecord {
  readonly seq: number
  readonly text: string
}

export interface LineSummary extends Line, Standing {
  readonly head: number
  /** Where it was forked from; absent for a thread's main line. */
  readonly forkedFrom?: { readonly branch: string; readonly at: number }
  /** Whether somebody holds the lease. */
  readonly busy: boolean
}

/**
 * Where threads are kept: for each line a log of records that only grows, entries beside it, and a lease. One contract suite,
 * `storeContract` in `contract.ts`, says what every store does.
 *
 * All methods reject, or throw, with a SluiceError: `THREAD_UNKNOWN`, `THREAD_BUSY`, `LEASE_LOST`, `BRANCH_EXISTS`,
 * `STORE_SEQUENCE`, or a code of the store's own.
 */
export interface Store {
  /** Milliseconds after which a lease wants to be renewed, a third of what it lasts; absent where it needs no renewal. */
  readonly renewEveryMs?: number
  /** What policies keep of principals, which belongs to no thread; always the same object. */
  readonly kept: KeptStore
  /** Takes the lease. With `create`, an unknown thread begins; it exists for others once something is written to it. */
  acquire(line: Line, options?: { readonly create?: boolean }): Awaitable<Lease>
  renew(lease: Lease): Awaitable<void>
  /** Gives the lease back, and forgets a line that nothing was written to; nothing happens when it was lost meanwhile. */
  release(lease: Lease): Awaitable<void>
  append(lease: Lease, commit: Commit): Awaitable<void>
  /** `undefined` for a thread or a branch that does not exist. */
  load(line: Line): Awaitable<Loaded | undefined>
  /** Records `from` to `to`, both included, as far as they are still there; those before a fork are those of its origin. */
  read(line: Line, range?: { readonly from?: number; readonly to?: number }): Awaitable<readonly StoredRecord[]>
  /**
   * Begins a branch that shares everything up to and including record `at`, and is listed as standing so; entries beside the log
   * go along from the head only.
   */
  fork(from: Line, at: number, branch: string, standing: Standing): Awaitable<void>
  /** Drops records before `before`, as far as neither the last snapshot nor a fork needs them; says how many. */
  trim(lease: Lease, before: number): Awaitable<number>
  /** Every line of every thread, or of one, the last written first. */
  lines(thread?: string): Awaitable<readonly LineSummary[]>
  /** Removes a thread with all its branches; false when there is none. */
  remove(thread: string): Awaitable<boolean>
  close(): Awaitable<void>
}

/** The branch that a thread begins with. */
export const MAIN = 'main'

/** How often a lease that is not renewed could have been by the time it runs out. */
export const RENEWALS_IN_A_LEASE = 3

const placeOf = ({ thread, branch }: Line) => ({ thread, branch })

const named = ({ thread, branch }: Line) =>
  branch === MAIN ? `thread "${thread}"` : `branch "${branch}" of thread "${thread}"`

export const unknownLine = (line: Line): SluiceError =>
  new SluiceError('THREAD_UNKNOWN', `there is no ${named(line)} in the store.`, placeOf(line))

export const busyLine = (line: Line, holder = 'another run'): SluiceError =>
  new SluiceError(
    'THREAD_BUSY',
    `${named(line)} is held by ${holder}; a thread has one writer at a time. Wait until it is done, or work on a fork.`,
    placeOf(line),
  )

export const lostLease = (line: Line): SluiceError =>
  new SluiceError(
    'LEASE_LOST',
    `the lease on ${named(line)} was taken over by another writer; nothing of this run was written after that.`,
    placeOf(line),
  )

export const branchExists = (line: Line): SluiceError =>
  new SluiceError('BRANCH_EXISTS', `there is already a ${named(line)}; choose another name.`, placeOf(line))

export const wrongSequence = (line: Line, given: number, next: number): SluiceError =>
  new SluiceError(
    'STORE_SEQUENCE',
    `${named(line)} was given record ${given} where record ${next} is next.`,
    placeOf(line),
  )

export const notInHistory = (line: Line, at: number, head: number): SluiceError =>
  new SluiceError('HISTORY_UNKNOWN', `${named(line)} has no record ${at}; it has 1 to ${head}.`, placeOf(line))
