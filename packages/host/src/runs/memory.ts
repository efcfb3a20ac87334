import {
  type AskEntry,
  answeredAsk,
  type RunEnding,
  type RunEntry,
  type RunLog,
  type StoredEvent,
  type ThreadEntry,
  unknownRun,
} from './run-log.ts'

/** A log in this process's memory: what it says is gone with the process. */
export const memoryRunLog = (): RunLog => new MemoryRunLog()

interface Held {
  entry: RunEntry
  readonly events: StoredEvent[]
}

class MemoryRunLog implements RunLog {
  readonly #runs = new Map<string, Held>()
  /** The oldest first. */
  readonly #ended = new Set<string>()
  readonly #asks = new Map<string, AskEntry>()
  readonly #threads = new Map<string, ThreadEntry>()

  begin(entry: RunEntry, answering: readonly string[] = []): void {
    for (const id of answering) if (this.#asks.get(id)?.closed !== undefined) throw answeredAsk(id)
    for (const id of answering) this.#close(id, { by: entry.by, at: entry.at, run: entry.id })
    this.#runs.set(entry.id, { entry, events: [] })
    this.#threads.set(keyOf(entry.owner, entry.thread), {
      owner: entry.owner,
      id: entry.thread,
      at: entry.at,
      flow: entry.flow,
    })
  }

  refuse(run: string): void {
    this.#runs.delete(run)
    for (const [id, { closed, ...ask }] of this.#asks) if (closed?.run === run) this.#asks.set(id, ask)
  }

  append(run: string, texts: readonly string[]): void {
    const { events } = this.#held(run)
    for (const text of texts) events.push({ seq: events.length + 1, text })
  }

  end(run: string, ending: RunEnding, at: number): void {
    const held = this.#held(run)
    const { owner, thread, branch, flow, startedBy } = held.entry
    held.entry = { ...held.entry, ending, endedAt: at }
    this.#ended.add(run)
    const { asks = [] } = ending
    const open = new Set(asks.map(({ id }) => id))
    for (const { ask, branch: its } of this.asks({ owner, thread }))
      if (its === branch && !open.has(ask.id)) this.#close(ask.id, { by: null, at, run })
    for (const ask of asks)
      if (!this.#asks.has(ask.id)) this.#asks.set(ask.id, { run, owner, thread, branch, flow, startedBy, ask })
  }

  run(id: string): RunEntry | undefined {
    return this.#runs.get(id)?.entry
  }

  runs({ owner, thread, limit = 100 }: Parameters<RunLog['runs']>[0] = {}): readonly RunEntry[] {
    const found = [...this.#runs.values()]
      .map(({ entry }) => entry)
      .filter(
        (entry) => (owner === undefined || entry.owner === owner) && (thread === undefined || entry.thread === thread),
      )
    return found.reverse().slice(0, limit)
  }

  events(run: string, after: number, limit: number): readonly StoredEvent[] {
    return this.#held(run).events.slice(after, after + limit)
  }

  ask(id: string): AskEntry | undefined {
    return this.#asks.get(id)
  }

  asks({ owner, thread }: Parameters<RunLog['asks']>[0] = {}): readonly AskEntry[] {
    return [...this.#asks.values()].filter(
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
    this.#threads.delete(keyOf(owner, id))
    for (const { entry } of this.#runs.values())
      if (entry.owner === owner && entry.thread === id) this.#forget(entry.id)
    for (const ask of this.#asks.values()) if (ask.owner === owner && ask.thread === id) this.#asks.delete(ask.ask.id)
  }

  claim(): readonly RunEntry[] {
    return []
  }

  trim({ keep = Number.POSITIVE_INFINITY, endedBefore = 0 }: Parameters<RunLog['trim']>[0]): readonly RunEntry[] {
    const forgotten: RunEntry[] = []
    for (const id of this.#ended) {
      const { entry } = this.#held(id)
      if (this.#ended.size <= keep && (entry.endedAt ?? 0) >= endedBefore) break
      this.#forget(id)
      if (entry.unnamed) this.#threads.delete(keyOf(entry.owner, entry.thread))
      forgotten.push(entry)
    }
    return forgotten
  }

  close(): void {}

  #held(run: string): Held {
    const held = this.#runs.get(run)
    if (held === undefined) throw unknownRun(run)
    return held
  }

  #close(id: string, closed: AskEntry['closed']): void {
    const ask = this.#asks.get(id)
    if (ask !== undefined) this.#asks.set(id, { ...ask, closed })
  }

  /** What it still asks stays to be answered. */
  #forget(run: string): void {
    this.#runs.delete(run)
    this.#ended.delete(run)
    for (const ask of this.#asks.values())
      if (ask.run === run && ask.closed !== undefined) this.#asks.delete(ask.ask.id)
  }
}

const keyOf = (owner: string, id: string) => JSON.stringify([owner, id])
