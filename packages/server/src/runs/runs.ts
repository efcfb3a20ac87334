import { type JsonObject, type Platform, platform, type RunEvent, SluiceError, showError } from '@sluice/core'
import {
  answeredAsk,
  type Begun,
  type FlowSource,
  type HostRuntime,
  type PutAsk,
  type RunEnding,
  type RunEntry,
  type RunLog,
  type StoredEvent,
} from '@sluice/host'
import type { Flows, Lent } from '../flows/flows.ts'
import { requireAnswerer } from '../guard/answering.ts'
import type { Principal } from '../guard/principal.ts'
import type { RunWatcher } from '../telemetry/watcher.ts'
import { type EventLimits, EventWriter } from './event-writer.ts'
import { later } from './later.ts'
import { LiveRun } from './live-run.ts'
import { Slots } from './slots.ts'
import { innerName } from './thread-name.ts'
import { type Before, EVENTS_AT_ONCE, endingOf, NOTHING, note, type Told, toldBefore } from './told.ts'
import { type RunEndEvent, type WayOn, wayOn } from './way-on.ts'

export interface RunRequest {
  readonly owner: string
  readonly by: Principal
  /** As the owner names it; a new one without it. */
  readonly thread?: string
  readonly branch?: string
  readonly flow: FlowSource
  readonly begun: Begun
  /** Of a resume: ids of the questions that are answered. */
  readonly answering?: readonly string[]
  /** Who began the turn, where it is not who asks now; of a resume it is known. */
  readonly startedBy?: string
  readonly timeoutMs?: number
  /** Whoever waits for a place has gone. */
  readonly signal?: AbortSignal
  /** Of the trace that the request belongs to, as headers. */
  readonly trace?: Readonly<Record<string, string>>
}

export interface RunsParts {
  readonly runtime: HostRuntime
  readonly log: RunLog
  readonly flows: Flows
  /** Ended runs that are remembered. */
  readonly keepRuns?: number
  /** What of each run's events is kept. */
  readonly keepEvents?: EventLimits
  /** How often it is looked for runs that other processes have left, in milliseconds. */
  readonly claimEveryMs?: number
  /** How many may be under way at once. */
  readonly slots?: Slots
  readonly clock?: Pick<Platform, 'time' | 'uuid'>
  readonly watchers?: readonly RunWatcher[]
}

/** How often it is looked whether another process has gone on with a run. */
const LOOK_EVERY_MS = 200

const CLAIM_EVERY_MS = 5_000

/** How long a run that is taken over waits before it looks again whether its thread is free. */
const BUSY_MS = 500

/** How many runs may end before it is looked which are old. */
const TRIM_EVERY = 100

/** The runs of this server: those under way here, and what the log says of all others. */
export class Runs {
  readonly log: RunLog
  readonly slots: Slots
  readonly #runtime: HostRuntime
  readonly #flows: Flows
  readonly #keepRuns: number
  readonly #clock: Pick<Platform, 'time' | 'uuid'>
  readonly #watchers: readonly RunWatcher[]
  readonly #keepEvents: EventLimits | undefined
  readonly #claimEveryMs: number
  readonly #live = new Map<string, LiveRun>()
  /** Runs that are taken over, until they are under way here. */
  readonly #takenOver = new Set<Promise<void>>()
  readonly #over = new AbortController()
  #ended = 0
  #timers: readonly ReturnType<typeof setInterval>[] = []

  constructor({
    runtime,
    log,
    flows,
    keepRuns = 1_000,
    keepEvents,
    claimEveryMs = CLAIM_EVERY_MS,
    slots = new Slots(),
    clock = platform,
    watchers = [],
  }: RunsParts) {
    this.#runtime = runtime
    this.log = log
    this.slots = slots
    this.#flows = flows
    this.#keepRuns = keepRuns
    this.#keepEvents = keepEvents
    this.#claimEveryMs = claimEveryMs
    this.#clock = clock
    this.#watchers = watchers
  }

  /** Goes on with runs that other processes have left, now and from now on, and hears of those that they are to cancel. */
  async start(): Promise<void> {
    const { beatEveryMs } = this.log
    await this.#claim()
    if (beatEveryMs === undefined) return
    const again = (work: () => Promise<void>) => () => void work().catch(() => {})
    this.#timers = [
      setInterval(
        again(() => this.#beat()),
        beatEveryMs,
      ),
      setInterval(
        again(() => this.#claim()),
        this.#claimEveryMs,
      ),
    ]
    for (const timer of this.#timers) timer.unref()
  }

  /** From now on no run begins here, nor is taken over; whoever waits for one that goes on elsewhere is told to come back. */
  drain(): void {
    for (const timer of this.#timers) clearInterval(timer)
    this.#over.abort()
  }

  get draining(): boolean {
    return this.#over.signal.aborted
  }

  /** How many are under way in this process. */
  get underWay(): number {
    return this.#live.size
  }

  /**
   * Begins a run, once there is a place for it, and settles when it is written down.
   *
   * @throws SluiceError for a flow that is none or an input that does not fit; `TOO_MANY_RUNS`, `ASK_ANSWERED`, `ANSWER_FORBIDDEN`,
   *   `SERVER_DRAINING`.
   */
  async begin(request: RunRequest): Promise<RunEntry> {
    const { flow, begun, by, signal } = request
    const answered = begun.kind === 'resume' ? await this.#requireAnswerer(request, begun.answers) : {}
    const leave = await this.slots.take(by.id, signal)
    let lent: Lent | undefined
    try {
      lent = await this.#flows.lend(flow)
      if (begun.kind === 'start') lent.graph.plan.boundary?.checkInput(begun.inputs)
      const entry = await this.#begin({ ...request, ...answered }, lent)
      const live = this.#live.get(entry.id)
      if (live === undefined) leave()
      else void live.done.finally(leave)
      return entry
    } catch (error) {
      await lent?.giveBack()
      leave()
      throw error
    }
  }

  /** By whatever way answers come in, each is from somebody who may give it, and for the very question that is open now. */
  async #requireAnswerer({ owner, thread, branch = 'main', by }: RunRequest, answers: JsonObject) {
    const open = thread === undefined ? [] : await this.log.asks({ owner, thread })
    const entries = Object.keys(answers).map((key) => {
      const entry = open.find((each) => each.branch === branch && each.ask.key === key)
      if (entry === undefined) throw answeredAsk(key)
      requireAnswerer(by, entry)
      return entry
    })
    const [first] = entries
    return { answering: entries.map(({ ask }) => ask.id), ...(first && { startedBy: first.startedBy }) }
  }

  async #begin(request: RunRequest, lent: Lent): Promise<RunEntry> {
    const { owner, by, thread, branch = 'main', flow, begun, answering, startedBy = by.id } = request
    const { timeoutMs, trace } = request
    const id = this.#clock.uuid()
    const entry: RunEntry = {
      id,
      owner,
      thread: thread ?? id,
      branch,
      ...(thread === undefined ? { unnamed: true as const } : {}),
      flow,
      begun,
      by: by.id,
      byKind: by.kind,
      startedBy,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      at: this.#clock.time(),
    }
    await this.log.begin(entry, answering)
    try {
      await this.#run(entry, { lent, way: 'begin', trace })
    } catch (error) {
      await this.log.refuse(id)
      throw error
    }
    return entry
  }

  /**
   * How a run ended; waits until it has, here or in another process.
   *
   * @param signal whoever waits has gone.
   * @throws SluiceError `RUN_UNKNOWN`; `SERVER_DRAINING` where it goes on in another process, and this one ends.
   */
  async ended(id: string, signal?: AbortSignal): Promise<RunEntry & { readonly ending: RunEnding }> {
    for (;;) {
      await this.#live.get(id)?.done
      const entry = await this.log.run(id)
      if (entry === undefined) throw new SluiceError('RUN_UNKNOWN', `there is no run "${id}".`, { run: id })
      const { ending } = entry
      if (ending !== undefined) return { ...entry, ending }
      if (this.draining) throw ends(id)
      signal?.throwIfAborted()
      await later(LOOK_EVERY_MS, signal, this.#over.signal)
    }
  }

  /**
   * Its events after `after`, and on until it ends, is forgotten or `signal` aborts; the last one is `run_end`. Without that, it goes on
   * in another process, and this one ends.
   */
  async *follow(id: string, after: number, signal: AbortSignal): AsyncGenerator<StoredEvent> {
    let seen = after
    while (!signal.aborted) {
      // Looked at before its events are read: of a run that has ended, all are there.
      const live = this.#live.get(id)
      const over = live === undefined && (this.draining || !(await this.#isUnderWay(id)))
      const turn = live?.next()
      const events = await this.#eventsOf(id, seen)
      for (const event of events) {
        yield event
        seen = event.seq
      }
      if (events.length > 0) continue
      if (over) return
      await (turn ?? later(LOOK_EVERY_MS, signal, this.#over.signal))
    }
  }

  /** Whether a run is known that has not ended. */
  async #isUnderWay(id: string): Promise<boolean> {
    const entry = await this.log.run(id)
    return entry !== undefined && entry.ending === undefined
  }

  async #eventsOf(id: string, after: number): Promise<readonly StoredEvent[]> {
    try {
      return await this.log.events(id, after, EVENTS_AT_ONCE)
    } catch (error) {
      const isOver = codeOf(error) === 'RUN_UNKNOWN' || this.draining
      if (!isOver) throw error
      return []
    }
  }

  /** Cancels a run, in whichever process it is under way; false where it has ended. */
  async cancel(id: string): Promise<boolean> {
    const live = this.#live.get(id)
    if (live === undefined) return this.log.cancel(id)
    live.cancel()
    return true
  }

  /** Whoever waited for a run has gone, and so nobody wants it; unless they were sent away because this process ends. */
  left(id: string): void {
    if (!this.draining) void this.cancel(id).catch(() => {})
  }

  /** Settles when no run is under way here any more. */
  async settled(): Promise<void> {
    for (;;) {
      const left = [...this.#takenOver, ...[...this.#live.values()].map(({ done }) => done)]
      if (left.length === 0) return
      await Promise.all(left)
    }
  }

  /** Gives back what was lent at the end. @throws the error that refused it, and then nothing was done. */
  async #run(entry: RunEntry, { lent, way, trace, before = NOTHING }: Running): Promise<void> {
    const { graph, runtime } = lent
    const { id, owner, thread, branch, begun, by, byKind = 'token', startedBy, timeoutMs } = entry
    const isContinued = way === 'continue' || begun.kind === 'continue'
    const stream = runtime.stream(graph, !isContinued && begun.kind === 'start' ? begun.inputs : undefined, {
      thread: innerName(owner, thread),
      branch,
      runId: id,
      principal: { kind: byKind, id: by },
      startedBy,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(!isContinued && begun.kind === 'resume' ? { resume: new Map(Object.entries(begun.answers)) } : {}),
      ...(isContinued ? { continue: true } : {}),
    })
    const { value: first } = await stream.next()
    if (first.type === 'run_end') throw (await stream.outcome).error
    for (const watcher of this.#watchers) watcher.began?.(entry, trace)
    const live = new LiveRun(() => stream.cancel())
    this.#live.set(id, live)
    const writer = new EventWriter({
      log: this.log,
      run: id,
      onWritten: () => live.moved(),
      written: before.count,
      ...(this.#keepEvents === undefined ? {} : { keep: this.#keepEvents }),
      notice: JSON.stringify({ type: 'warning', message: TOO_MANY, path: [graph.plan.name] }),
    })
    // Of a run that goes on, it was said that it began.
    for (const text of before.count === 0 ? [JSON.stringify(first)] : before.retracted) writer.write(text)
    live.done = this.#pump(entry, stream, writer, before.told)
      .catch(() => {})
      .then(() => lent.giveBack())
      .catch(() => {})
      .finally(() => {
        this.#live.delete(id)
        live.moved()
      })
  }

  /** Writes events down as they arise; who follows the run reads them there. */
  async #pump(entry: RunEntry, events: AsyncIterable<RunEvent>, writer: EventWriter, before: Told): Promise<void> {
    const told = { warnings: [...before.warnings], decisions: [...before.decisions] }
    let end: RunEndEvent = { type: 'run_end', status: 'failed', error: WORDLESS, path: [] }
    for await (const event of events) {
      note(told, event)
      for (const watcher of this.#watchers) watcher.event(entry, event)
      if (event.type === 'run_end' && event.path.length === 1) end = event
      else await writer.write(JSON.stringify(event))
    }
    const rest = await writer.rest()
    const isDrained = this.log.durable && end.error?.code === 'RUN_DRAINED'
    // What it did stands in its thread: whoever takes it over reads there how it ended, or goes on.
    if (isDrained || writer.failure !== undefined) return this.#letGo(entry.id, rest)
    await this.#end(entry, end, { told, rest }).catch(() => this.#letGo(entry.id, []))
  }

  async #letGo(id: string, rest: readonly string[]): Promise<void> {
    try {
      if (rest.length > 0) await this.log.append(id, rest)
    } finally {
      await this.log.release(id)
    }
  }

  /** @param refused it did not begin: the questions that it was to answer are open again. */
  async #end(
    entry: RunEntry,
    event: RunEndEvent,
    { told, rest = [], refused = false }: { told: Told; rest?: readonly string[]; refused?: boolean },
  ): Promise<void> {
    const asks = event.asks === undefined ? undefined : await this.#putAsks(entry, event.asks)
    const ending = endingOf(event, asks, told)
    const at = this.#clock.time()
    const events = [...rest, JSON.stringify(asks === undefined ? event : { ...event, asks })]
    await this.log.end(entry.id, { ending, at, events, ...(refused ? { refused } : {}) })
    for (const watcher of this.#watchers) watcher.ended({ ...entry, ending, endedAt: at })
    this.#ended++
    if (this.#ended % TRIM_EVERY === 0) await this.trim().catch(() => {})
  }

  /** Forgets old runs, and threads that were begun for them alone. */
  async trim(): Promise<void> {
    const forgotten = await this.log.trim({ keep: this.#keepRuns })
    for (const { owner, id } of forgotten) await this.#runtime.current.store.remove(innerName(owner, id))
  }

  async #beat(): Promise<void> {
    for (const id of await this.log.beat()) this.#live.get(id)?.cancel()
  }

  async #claim(): Promise<void> {
    if (this.draining) return
    for (const entry of await this.log.claim()) {
      const taken = this.#takeOver(entry)
        .catch(() => this.log.release(entry.id))
        .catch(() => {})
        .finally(() => this.#takenOver.delete(taken))
      this.#takenOver.add(taken)
    }
  }

  /** Goes on with a run whose process has left it. What may be mended by time is left to be claimed again. */
  async #takeOver(entry: RunEntry): Promise<void> {
    const before = await toldBefore(this.log, entry.id)
    while (!this.draining) {
      let way: WayOn = 'continue'
      let lent: Lent | undefined
      let isRunning = false
      try {
        lent = await this.#flows.lend(entry.flow)
        way = await wayOn(lent.runtime, lent.graph, entry)
        if (typeof way === 'object') return await this.#end(entry, way, { told: before.told })
        await this.#run(entry, { lent, way, before })
        isRunning = true
        // Tells whether somebody has asked to cancel it meanwhile; the next one tells it, too.
        void this.#beat().catch(() => {})
        return
      } catch (error) {
        const code = codeOf(error) ?? ''
        if (code === 'RUN_LOST' || code === 'RUN_UNKNOWN') return
        if (code.startsWith('STORE_')) break
        if (code !== 'THREAD_BUSY') return this.#endRefused(entry, before.told, error, way === 'begin')
        await later(BUSY_MS, this.#over.signal)
      } finally {
        if (!isRunning) await lent?.giveBack()
      }
    }
    await this.log.release(entry.id)
  }

  #endRefused(entry: RunEntry, told: Told, error: unknown, refused: boolean): Promise<void> {
    const name = 'name' in entry.flow ? entry.flow.name : 'flow'
    return this.#end(
      entry,
      { type: 'run_end', status: 'failed', error: showError(error), path: [name] },
      { told, refused },
    )
  }

  /** A question keeps its id from run to run until it is answered. */
  async #putAsks(
    { owner, thread, branch }: RunEntry,
    asks: NonNullable<(RunEvent & { type: 'run_end' })['asks']>,
  ): Promise<readonly PutAsk[]> {
    const open = (await this.log.asks({ owner, thread })).filter((entry) => entry.branch === branch)
    const idOf = (key: string, askedAt: number) =>
      open.find(({ ask }) => ask.key === key && ask.askedAt === askedAt)?.ask.id ?? this.#clock.uuid()
    return asks.map((ask) => ({ id: idOf(ask.key, ask.askedAt), ...ask }))
  }
}

const TOO_MANY = 'this run has done more than is kept of it; what it still does is not told until its end.'

const WORDLESS = { name: 'Error', message: 'it ended without a word' }

interface Running {
  readonly lent: Lent
  readonly way: 'begin' | 'continue'
  readonly trace?: Readonly<Record<string, string>> | undefined
  readonly before?: Before
}

const codeOf = (error: unknown): string | undefined => (error as { code?: string } | undefined)?.code

const ends = (run: string) =>
  new SluiceError('SERVER_DRAINING', `this server is about to end; run "${run}" goes on. Ask for it in a moment.`, {
    run,
  })
