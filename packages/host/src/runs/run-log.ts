import {
  type Ask,
  type Awaitable,
  type Json,
  type JsonObject,
  type ShownError,
  SluiceError,
  type Status,
} from '@sluice/core'
import type { RequestCode } from '../brought/code.ts'

/** Where a run's flow comes from: its name among those of the operator, or the text that was handed in, with code it runs with. */
export type FlowSource =
  | { readonly name: string }
  | { readonly document: string; readonly format?: 'json' | 'yaml'; readonly code?: RequestCode }

/** What a run was begun with. */
export type Begun =
  | { readonly kind: 'start'; readonly inputs: JsonObject }
  | { readonly kind: 'resume'; readonly answers: JsonObject }
  | { readonly kind: 'continue' }

/** A question as a run put it. */
export interface PutAsk extends Ask {
  /** Nobody can guess it, and no other question ever has it. */
  readonly id: string
}

/** What a run came to. */
export interface RunEnding {
  readonly status: Status
  /** After `completed`. */
  readonly result?: Json
  /** After `failed` and `cancelled`. */
  readonly error?: ShownError
  /** After `paused`. */
  readonly asks?: readonly PutAsk[]
  /** The first 1,000, as the events that told them. */
  readonly warnings: readonly JsonObject[]
  /** Verdicts that changed something; the first 1,000. */
  readonly decisions: readonly JsonObject[]
}

/** A run, as whoever let it in knows it; what it does stands in its thread. */
export interface RunEntry {
  readonly id: string
  /** Whose it is and its thread; empty where callers are not told apart. */
  readonly owner: string
  /** As the owner names it. */
  readonly thread: string
  readonly branch: string
  /** The thread was begun for this run, which named none; it is forgotten with it. */
  readonly unnamed?: true
  readonly flow: FlowSource
  readonly begun: Begun
  /** Who began it: the owner, or who answered. */
  readonly by: string
  /** Who began the first run of its turn. */
  readonly startedBy: string
  /** What kind of principal `by` is. */
  readonly byKind?: string
  /** Milliseconds it may take, where its request said so. */
  readonly timeoutMs?: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** Absent while it is under way. */
  readonly ending?: RunEnding
  readonly endedAt?: number
}

/** A question that a run has put, until it is answered and after. */
export interface AskEntry extends Pick<RunEntry, 'owner' | 'thread' | 'branch' | 'flow' | 'startedBy'> {
  /** The run that put it first. */
  readonly run: string
  readonly ask: PutAsk
  /** Who answered it and when, with which run; `null` where it was withdrawn. */
  readonly closed?: { readonly by: string | null; readonly at: number; readonly run: string }
}

export interface ThreadEntry {
  readonly owner: string
  readonly id: string
  /** When it was begun. */
  readonly at: number
  /** Of the last run. */
  readonly flow?: FlowSource
  /** It is forgotten with its last run, once it asks nothing. */
  readonly unnamed?: true
}

/** How a run ends, in one write. */
export interface RunEnd {
  readonly ending: RunEnding
  /** Milliseconds since 1970. */
  readonly at: number
  /** Its last events. */
  readonly events?: readonly string[]
  /** Its thread refused it: the questions that it was to answer are open again, and no other is withdrawn. */
  readonly refused?: true
}

export interface StoredEvent {
  /** From 1, without gaps in each run. */
  readonly seq: number
  /** JSON text. */
  readonly text: string
}

export interface RunFilter {
  readonly owner?: string
  readonly thread?: string
  /** At most so many, the latest first; 100 without it. */
  readonly limit?: number
}

/**
 * The runs of a server, their events and the questions they put, so that whoever comes back, after a restart and at another process
 * on the same log, finds them. One contract suite, `runLogContract`, says what every log does.
 *
 * Methods reject, or throw, with a SluiceError: `RUN_UNKNOWN`, `RUN_LOST` where another process has taken the run over,
 * `ASK_ANSWERED`, or a code of the log's own.
 */
export interface RunLog {
  /** Whether what it holds outlives the process, so that another one goes on with runs that this one leaves. */
  readonly durable: boolean
  /** How often {@link RunLog.beat} wants to be called, in milliseconds; absent where nobody else could hold a run. */
  readonly beatEveryMs?: number
  /** Writes a run down before it begins, and closes the questions that it answers: all of it or nothing. This log holds it. */
  begin(entry: RunEntry, answering?: readonly string[]): Awaitable<void>
  /** Forgets a run that was refused before it began, and opens the questions again that it was to answer. */
  refuse(run: string): Awaitable<void>
  /** Appends events to a run that this log holds. */
  append(run: string, texts: readonly string[]): Awaitable<void>
  /** Ends a run that this log holds, opens the questions it waits for, and withdraws the others of its line. */
  end(run: string, end: RunEnd): Awaitable<void>
  /** Holds a run no longer, which is not at its end: whoever claims it goes on with it. Nothing happens where it is lost already. */
  release(run: string): Awaitable<void>
  /** Takes over the runs that nobody holds, and those whose holder is gone or gave no sign of life for too long. */
  claim(): Awaitable<readonly RunEntry[]>
  /** Says that whoever holds runs here is alive, and hands back the runs held here that are to be cancelled. */
  beat(): Awaitable<readonly string[]>
  /** Asks whoever holds a run to cancel it; false where none of that id is under way. */
  cancel(run: string): Awaitable<boolean>
  run(id: string): Awaitable<RunEntry | undefined>
  runs(filter?: RunFilter): Awaitable<readonly RunEntry[]>
  /** Events after `after`, at most `limit`. */
  events(run: string, after: number, limit: number): Awaitable<readonly StoredEvent[]>
  ask(id: string): Awaitable<AskEntry | undefined>
  /** Open questions, the oldest first. */
  asks(filter?: { readonly owner?: string; readonly thread?: string }): Awaitable<readonly AskEntry[]>
  /** Begins a thread, if there is none of that name. */
  addThread(thread: ThreadEntry): Awaitable<void>
  thread(owner: string, id: string): Awaitable<ThreadEntry | undefined>
  /** Of this owner, or of all; the latest begun first. */
  threads(owner: string | undefined, limit?: number): Awaitable<readonly ThreadEntry[]>
  /** Forgets a thread with its runs, events and questions. */
  removeThread(owner: string, id: string): Awaitable<void>
  /**
   * Forgets ended runs with their events, all but the last `keep`, and those that ended before `endedBefore`; closed questions go with
   * the last run that knew them. Hands back the unnamed threads that went along.
   */
  trim(old: { readonly keep?: number; readonly endedBefore?: number }): Awaitable<readonly ThreadEntry[]>
  /** Lets go of every run it holds. */
  close(): Awaitable<void>
}

export const unknownRun = (run: string): SluiceError =>
  new SluiceError('RUN_UNKNOWN', `there is no run "${run}", or it is forgotten by now.`, { run })

export const lostRun = (run: string): SluiceError =>
  new SluiceError('RUN_LOST', `another process has taken over run "${run}"; what this one still did is not written.`, {
    run,
  })

export const answeredAsk = (ask: string): SluiceError =>
  new SluiceError('ASK_ANSWERED', 'this question is answered already, or was withdrawn; an answer counts once.', {
    ask,
  })
