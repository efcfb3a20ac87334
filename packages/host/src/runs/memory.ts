import {
  type AskEntry,
  answeredAsk,
  lostRun,
  type RunEnd,
  type RunEntry,
  type RunLog,
  type StoredEvent,
  type ThreadEntry,
  unknownRun,
} from './run-log.ts'

/** A log in this process's memory: what it says is gone with the process. */
export const memoryRunLog = (): RunLog => new MemoryRunLog()

interface Logged {
  entry: RunEntry
  /** Its thread as it was before. */
  readonly before: ThreadEntry | undefined
  /** Of its events. */
  readonly texts: string[]
  held: boolean
  cancelled: boolean
}

class MemoryRunLog implements RunLog {
  readonly durable = false
  readonly #runs = new Map<string, Logged>()
  /** The oldest first. */
  readonly #ended = new Set<string>()
  readonly #asks = new Map<string, AskEntry>()
  readonly #threads = new Map<string, ThreadEntry>()
  /** Ids of the runs and of the questions of each thread: what is looked for is mostly one thread's. */
  readonly #runsOf = new IdsOf()
  readonly #asksOf = new IdsOf()

  begin(entry: RunEntry, answering: readonly string[] = []): void {
    for (const id of answering) if (this.#asks.get(id)?.closed !== undefined) throw answeredAsk(id)
    for (const id of answering) this.#close(id, { by: entry.by, at: entry.at, run: entry.id })
    const key = keyOf(entry.owner, entry.thread)
    const before = this.#threads.get(key)
    this.#runs.set(entry.id, { entry, before, texts: [], held: true, cancelled: false })
    this.#runsOf.add(key, entry.id)
    this.#threads.set(key, threadOf(entry, before))
  }

  refuse(run: string): void {
    const { entry, before } = this.#held(run)
    const [last] = this.runs({ owner: entry.owner, thread: entry.thread, limit: 1 })
    this.#reopen(run)
    this.#forget(run)
    const key = keyOf(entry.owner, entry.thread)
    if (last?.id !== run) return
    if (before === undefined) this.#threads.delete(key)
    else this.#threads.set(key, before)
  }

  append(run: string, texts: readonly string[]): void {
    const { texts: written } = this.#held(run)
    for (const text of texts) written.push(text)
  }

  end(run: string, { ending, at, events = [], refused }: RunEnd): void {
    const logged = this.#held(run)
    this.append(run, events)
    logged.entry = { ...logged.entry, ending, endedAt: at }
    logged.held = false
    this.#ended.add(run)
    if (refused) this.#reopen(run)
    else this.#ask(logged.entry, ending.asks ?? [], at)
  }

  release(run: string): void {
    const logged = this.#runs.get(run)
    if (logged !== undefined) logged.held = false
  }

  claim(): readonly RunEntry[] {
    const left = [...this.#runs.values()].filter(({ held, entry }) => !held && entry.ending === undefined)
    for (const logged of left) logged.held = true
    return left.map(({ entry }) => entry)
  }

  beat(): readonly string[] {
    const cancelled = [...this.#runs.values()].filter((logged) => logged.held && logged.cancelled)
    return cancelled.map(({ entry }) => entry.id)
  }

  cancel(run: string): boolean {
    const logged = this.#runs.get(run)
    if (logged === undefined || logged.entry.ending !== undefined) return false
    logged.cancelled = true
    return true
  }

  run(id: string): RunEntry | undefined {
    return this.#runs.get(id)?.entry
  }

  runs({ owner, thread, limit = 100 }: Parameters<RunLog['runs']>[0] = {}): readonly RunEntry[] {
    const ids = owner !== undefined && thread !== undefined ? this.#runsOf.get(keyOf(owner, thread)) : this.#runs.keys()
    const found = [...ids]
      .map((id) => this.#known(id).entry)
      .filter(
        (entry) => (owner === undefined || entry.owner === owner) && (thread === undefined || entry.thread === thread),
      )
    return found.reverse().slice(0, limit)
  }

  events(run: string, after: number, limit: number): readonly StoredEvent[] {
    const { texts } = this.#known(run)
    return texts.slice(after, after + limit).map((text, i) => ({ seq: after + i + 1, text }))
  }

  ask(id: string): AskEntry | undefined {
    return this.#asks.get(id)
  }

  asks({ owner, thread }: Parameters<RunLog['asks']>[0] = {}): readonly AskEntry[] {
    const ids = owner !== undefined && thread !== undefined ? this.#asksOf.get(keyOf(owner, thread)) : this.#asks.keys()
    const entries = [...ids].map((id) => this.#asks.get(id) as AskEntry)
    return entries.filter(
      (entry) =>
        entry.closed === undefined &&
        (owner === undefined || entry.owner === owner) &&
        (thread === undefined || entry.thread === thread),
    )
  }

  addThread(thread: ThreadEntry): void {
    const key = keyOf(thread.owner, thread.id)
    if (!this.#threads.has(key)) this.#threads.set(key, thread)
  }

  thread(owner: string, id: string): ThreadEntry | undefined {
    return this.#threads.get(keyOf(owner, id))
  }

  threads(owner: string | undefined, limit = 100): readonly ThreadEntry[] {
    return [...this.#threads.values()]
      .filter((thread) => owner === undefined || thread.owner === owner)
      .reverse()
      .slice(0, limit)
  }

  removeThread(owner: string, id: string): void {
    const key = keyOf(owner, id)
    this.#threads.delete(key)
    for (const run of [...this.#runsOf.get(key)]) this.#forget(run)
    for (const ask of [...this.#asksOf.get(key)]) this.#forgetAsk(ask)
  }

  trim({ keep = Number.POSITIVE_INFINITY, endedBefore = 0 }: Parameters<RunLog['trim']>[0]): readonly ThreadEntry[] {
    const left = new Map<string, ThreadEntry>()
    for (const id of this.#ended) {
      const { entry } = this.#known(id)
      if (this.#ended.size <= keep && (entry.endedAt ?? 0) >= endedBefore) break
      this.#forget(id)
      const thread = this.thread(entry.owner, entry.thread)
      if (thread?.unnamed) left.set(keyOf(entry.owner, entry.thread), thread)
    }
    const over = [...left.values()].filter(
      ({ owner, id }) =>
        this.runs({ owner, thread: id, limit: 1 }).length === 0 && this.asks({ owner, thread: id }).length === 0,
    )
    for (const { owner, id } of over) this.removeThread(owner, id)
    for (const { ask, run, closed } of this.#asks.values())
      if (closed !== undefined && !this.#runs.has(run) && !this.#runs.has(closed.run)) this.#forgetAsk(ask.id)
    return over
  }

  close(): void {
    for (const logged of this.#runs.values()) logged.held = false
  }

  #known(run: string): Logged {
    const logged = this.#runs.get(run)
    if (logged === undefined) throw unknownRun(run)
    return logged
  }

  #held(run: string): Logged {
    const logged = this.#known(run)
    if (!logged.held) throw lostRun(run)
    return logged
  }

  #ask(entry: RunEntry, asks: NonNullable<RunEnd['ending']['asks']>, at: number): void {
    const { id: run, owner, thread, branch, flow, startedBy } = entry
    const open = new Set(asks.map(({ id }) => id))
    for (const { ask, branch: its } of this.asks({ owner, thread }))
      if (its === branch && !open.has(ask.id)) this.#close(ask.id, { by: null, at, run })
    for (const ask of asks) {
      if (this.#asks.has(ask.id)) continue
      this.#asks.set(ask.id, { run, owner, thread, branch, flow, startedBy, ask })
      this.#asksOf.add(keyOf(owner, thread), ask.id)
    }
  }

  #close(id: string, closed: AskEntry['closed']): void {
    const ask = this.#asks.get(id)
    if (ask !== undefined) this.#asks.set(id, { ...ask, closed })
  }

  #reopen(run: string): void {
    for (const [id, { closed, ...ask }] of this.#asks) if (closed?.run === run) this.#asks.set(id, ask)
  }

  #forget(run: string): void {
    const { owner, thread } = this.#known(run).entry
    this.#runs.delete(run)
    this.#ended.delete(run)
    this.#runsOf.delete(keyOf(owner, thread), run)
  }

  #forgetAsk(id: string): void {
    const ask = this.#asks.get(id)
    this.#asks.delete(id)
    if (ask !== undefined) this.#asksOf.delete(keyOf(ask.owner, ask.thread), id)
  }
}

const NONE: ReadonlySet<string> = new Set()

/** Ids by what they belong to, in the order in which they came. */
class IdsOf {
  readonly #ids = new Map<string, Set<string>>()

  get(key: string): ReadonlySet<string> {
    return this.#ids.get(key) ?? NONE
  }

  add(key: string, id: string): void {
    const ids = this.#ids.get(key)
    if (ids === undefined) this.#ids.set(key, new Set([id]))
    else ids.add(id)
  }

  delete(key: string, id: string): void {
    const ids = this.#ids.get(key)
    ids?.delete(id)
    if (ids?.size === 0) this.#ids.delete(key)
  }
}

/** A thread once a run has begun on it. */
export const threadOf = (
  { owner, thread, at, flow, unnamed }: RunEntry,
  before: ThreadEntry | undefined,
): ThreadEntry => ({ owner, id: thread, at, ...(unnamed && { unnamed }), ...before, flow })

const keyOf = (owner: string, id: string) => JSON.stringify([owner, id])
