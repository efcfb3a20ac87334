import {
  type JsonObject,
  type Platform,
  platform,
  type RunEvent,
  SluiceError,
  type Status,
  showError,
} from '@sluice/core'
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
import type { Flows } from '../flows/flows.ts'
import { requireAnswerer } from '../guard/answering.ts'
import type { Principal } from '../guard/principal.ts'
import type { RunWatcher } from '../telemetry/watcher.ts'
import { LiveRun } from './live-run.ts'
import { Slots } from './slots.ts'
import { innerName } from './thread-name.ts'

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
  /** How many may be under way at once. */
  readonly slots?: Slots
  readonly clock?: Pick<Platform, 'time' | 'uuid'>
  readonly watchers?: readonly RunWatcher[]
}

const EVENTS_AT_ONCE = 256

/** How often it is looked whether another process has gone on with a run. */
const LOOK_EVERY_MS = 200

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
  readonly #live = new Map<string, LiveRun>()
  #ended = 0

  constructor({
    runtime,
    log,
    flows,
    keepRuns = 1_000,
    slots = new Slots(),
    clock = platform,
    watchers = [],
  }: RunsParts) {
    this.#runtime = runtime
    this.log = log
    this.slots = slots
    this.#flows = flows
    this.#keepRuns = keepRuns
    this.#clock = clock
    this.#watchers = watchers
  }

  /** How many are under way in this process. */
  get underWay(): number {
    return this.#live.size
  }

  /**
   * Begins a run, once there is a place for it, and settles when it is written down.
   *
   * @throws SluiceError for a flow that is none or an input that does not fit; `TOO_MANY_RUNS`, `ASK_ANSWERED`, `ANSWER_FORBIDDEN`.
   */
  async begin(request: RunRequest): Promise<RunEntry> {
    const { flow, begun, by, signal } = request
    const startedBy = begun.kind === 'resume' ? await this.#requireAnswerer(request, begun.answers) : request.startedBy
    const { graph } = await this.#flows.compiled(flow)
    if (begun.kind === 'start') graph.plan.boundary?.checkInput(begun.inputs)
    const leave = await this.slots.take(by.id, signal)
    try {
      const entry = await this.#begin({ ...request, ...(startedBy === undefined ? {} : { startedBy }) })
      const live = this.#live.get(entry.id)
      if (live === undefined) leave()
      else void live.done.finally(leave)
      return entry
    } catch (error) {
      leave()
      throw error
    }
  }

  /** By whatever way answers come in, each is from somebody who may give it. @returns who began the turn. */
  async #requireAnswerer({ owner, thread, branch = 'main', by }: RunRequest, answers: JsonObject) {
    const open = thread === undefined ? [] : await this.log.asks({ owner, thread })
    let startedBy: string | undefined
    for (const key of Object.keys(answers)) {
      const entry = open.find((each) => each.branch === branch && each.ask.key === key)
      if (entry === undefined) throw answeredAsk(key)
      requireAnswerer(by, entry)
      startedBy = entry.startedBy
    }
    return startedBy
  }

  async #begin(request: RunRequest): Promise<RunEntry> {
    const { owner, by, thread, branch = 'main', flow, begun, answering, startedBy = by.id } = request
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
      startedBy,
      at: this.#clock.time(),
    }
    await this.log.begin(entry, answering)
    await this.#run(entry, by, request)
    return entry
  }

  /** How a run ended; waits until it has. @throws SluiceError `RUN_UNKNOWN`. */
  async ended(id: string, signal?: AbortSignal): Promise<RunEntry & { readonly ending: RunEnding }> {
    for (;;) {
      const live = this.#live.get(id)
      if (live !== undefined) await live.done
      const entry = await this.log.run(id)
      if (entry === undefined) throw new SluiceError('RUN_UNKNOWN', `there is no run "${id}".`, { run: id })
      const { ending } = entry
      if (ending !== undefined) return { ...entry, ending }
      if (live !== undefined) throw new SluiceError('RUN_LOST', `run "${id}" goes on in another process.`, { run: id })
      await later(LOOK_EVERY_MS, signal)
    }
  }

  /** Its events after `after`, and on until it ends or `signal` aborts; the last one is `run_end`. */
  async *follow(id: string, after: number, signal: AbortSignal): AsyncGenerator<StoredEvent> {
    let seen = after
    while (!signal.aborted) {
      // Looked at before its events are read: of a run that has ended, all are there.
      const live = this.#live.get(id)
      const over = live === undefined && (await this.log.run(id))?.ending !== undefined
      const turn = live?.next()
      const events = await this.log.events(id, seen, EVENTS_AT_ONCE)
      for (const event of events) {
        yield event
        seen = event.seq
      }
      if (events.length > 0) continue
      if (over) return
      await (turn ?? later(LOOK_EVERY_MS, signal))
    }
  }

  /** Cancels a run that is under way here; false where there is none. */
  cancel(id: string): boolean {
    const live = this.#live.get(id)
    live?.cancel()
    return live !== undefined
  }

  /** Settles when no run is under way here any more. */
  async settled(): Promise<void> {
    while (this.#live.size > 0) await Promise.all([...this.#live.values()].map(({ done }) => done))
  }

  /** @throws the error that refused it; then nothing is left of it. */
  async #run(
    entry: RunEntry,
    by: Principal,
    { timeoutMs, trace }: Pick<RunRequest, 'timeoutMs' | 'trace'> = {},
  ): Promise<void> {
    const { id, owner, thread, branch, begun } = entry
    const { graph } = await this.#flows.compiled(entry.flow)
    const controller = new AbortController()
    const stream = this.#runtime.stream(graph, begun.kind === 'start' ? begun.inputs : undefined, {
      thread: innerName(owner, thread),
      branch,
      runId: id,
      principal: { kind: by.kind, id: by.id },
      signal: controller.signal,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(begun.kind === 'resume' ? { resume: new Map(Object.entries(begun.answers)) } : {}),
      ...(begun.kind === 'continue' ? { continue: true } : {}),
    })
    const first = await stream.next()
    if (first.value?.type === 'run_end') {
      await this.log.refuse(id)
      throw (await stream.outcome).error
    }
    for (const watcher of this.#watchers) watcher.began?.(entry, trace)
    const live = new LiveRun(controller)
    this.#live.set(id, live)
    live.done = this.#pump(entry, live, first.value, stream).finally(() => {
      this.#live.delete(id)
      live.moved()
    })
  }

  /** Writes events down as they arise; who follows the run reads them there. */
  async #pump(entry: RunEntry, live: LiveRun, first: RunEvent, rest: AsyncIterable<RunEvent>): Promise<void> {
    const told = { warnings: [] as JsonObject[], decisions: [] as JsonObject[] }
    let end: RunEnding | undefined
    try {
      await this.log.append(entry.id, [JSON.stringify(first)])
      for await (const event of rest) {
        note(told, event)
        for (const watcher of this.#watchers) watcher.event(entry, event)
        const last = event.type === 'run_end' && event.path.length === 1
        const asks = last && event.asks !== undefined ? await this.#putAsks(entry, event.asks) : undefined
        await this.log.append(entry.id, [JSON.stringify(asks === undefined ? event : { ...event, asks })])
        if (last) end = endingOf(event, asks, told)
        else live.moved()
      }
      await this.#end(
        entry,
        end ?? { status: 'failed', error: showError(new Error('it ended without a word')), ...told },
      )
    } catch (error) {
      // What it did is in its thread; that it could not be written down here ends it, or another process has it now.
      live.cancel()
      await Promise.resolve(this.#end(entry, { status: 'failed', error: showError(error), ...told })).catch(() => {})
    }
  }

  async #end(entry: RunEntry, ending: RunEnding): Promise<void> {
    const endedAt = this.#clock.time()
    await this.log.end(entry.id, ending, endedAt)
    for (const watcher of this.#watchers) watcher.ended({ ...entry, ending, endedAt })
    this.#ended++
    if (this.#ended % TRIM_EVERY === 0) await this.#trim()
  }

  async #trim(): Promise<void> {
    const forgotten = await this.log.trim({ keep: this.#keepRuns })
    for (const { owner, thread, unnamed, ending } of forgotten)
      if (unnamed && ending?.status !== 'paused') await this.#runtime.current.store.remove(innerName(owner, thread))
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

const MOST_TOLD = 1_000

function note(told: { warnings: JsonObject[]; decisions: JsonObject[] }, event: RunEvent): void {
  const list = event.type === 'warning' ? told.warnings : event.type === 'decision' ? told.decisions : undefined
  if (list === undefined || list.length >= MOST_TOLD) return
  const { type, ...said } = event
  list.push(said as unknown as JsonObject)
}

function endingOf(
  { status, result, error }: RunEvent & { type: 'run_end' },
  asks: readonly PutAsk[] | undefined,
  told: Pick<RunEnding, 'warnings' | 'decisions'>,
): RunEnding {
  return {
    status: status as Status,
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error }),
    ...(asks === undefined ? {} : { asks }),
    ...told,
  }
}

function later(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done)
  })
}
