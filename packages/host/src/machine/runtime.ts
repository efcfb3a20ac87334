import {
  MemoryStore,
  messageOf,
  type Runnable,
  type RunOptions,
  type RunOutcome,
  type RunStream,
  type Runtime,
  type StreamOptions,
} from '@sluice/core'
import type { CheckedFlow, FlowGraph } from '@sluice/flow'
import { Generation } from './generation.ts'
import { type DocumentOptions, type Host, type HostOptions, type LoadedFlow, openHost, openLog } from './host.ts'
import { type ReloadOn, reloadOn } from './reload-on.ts'

export interface HostRuntimeOptions extends HostOptions {
  /**
   * When the policy file is loaded anew: at the signal `SIGHUP`, when it has changed, or both. Without it, only when
   * {@link HostRuntime.reload} is called.
   */
  readonly reloadOn?: readonly ReloadOn[]
}

/**
 * A runtime with everything that belongs to the machine: a policy file, plugins, tool programs. It lives long; close it at the
 * end.
 *
 * @throws SluiceError for whatever is wrong with a file, a manifest or a setting.
 */
export async function createRuntime(options: HostRuntimeOptions = {}): Promise<HostRuntime> {
  const decisions = await openLog(options.decisions, options.onWarning)
  const whole = { ...options, store: options.store ?? new MemoryStore(), decisions }
  const closeLog = async () => {
    if (decisions !== options.decisions) await decisions?.close?.()
  }
  return new HostRuntime(whole, await openHost(whole), closeLog)
}

/** What is on a machine, open over reloads until it is released. */
export interface HeldHost {
  readonly host: Host
  /** Its plugins may end, where another host has taken its place. Calling it again does nothing more. */
  release(): void
}

/** Runs graphs and flows. A run keeps the policies, tools and models that it began with; the next one has those there are then. */
export class HostRuntime {
  readonly #options: HostRuntimeOptions
  /** Those that are not closed. */
  readonly #generations = new Set<Generation>()
  readonly #stopListening: () => void
  readonly #closeLog: () => Promise<void>
  #generation: Generation
  #reloading: Promise<void> = Promise.resolve()

  constructor(options: HostRuntimeOptions, host: Host, closeLog: () => Promise<void>) {
    this.#closeLog = closeLog
    this.#options = options
    this.#generation = this.#generationOf(host)
    this.#stopListening = reloadOn(options.reloadOn ?? [], options.policies, () => this.#reloadAndTell())
  }

  /** What a run that begins now runs with: for threads (`history`, `fork`, …) and `explain`. Another one after a reload. */
  get current(): Runtime {
    return this.#generation.host.runtime
  }

  /** As {@link Runtime.run}. */
  run<State, Update>(graph: Runnable<State, Update>, input?: Update, options?: RunOptions): Promise<RunOutcome<State>> {
    return this.#during((runtime) => runtime.run(graph, input, options))
  }

  /** As {@link Runtime.settle}. */
  settle<State, Update>(
    graph: Runnable<State, Update>,
    input?: Update,
    options?: RunOptions,
  ): Promise<RunOutcome<State>> {
    return this.#during((runtime) => runtime.settle(graph, input, options))
  }

  /** As {@link Runtime.resume}. */
  resume<State, Update>(
    graph: Runnable<State, Update>,
    thread: string,
    answers: unknown,
    options?: RunOptions,
  ): Promise<RunOutcome<State>> {
    return this.#during((runtime) => runtime.resume(graph, thread, answers, options))
  }

  /** As {@link Runtime.continue}. */
  continue<State, Update>(
    graph: Runnable<State, Update>,
    thread: string,
    options?: RunOptions,
  ): Promise<RunOutcome<State>> {
    return this.#during((runtime) => runtime.continue(graph, thread, options))
  }

  /** As {@link Runtime.stream}. */
  stream<State, Update>(graph: Runnable<State, Update>, input?: Update, options?: StreamOptions): RunStream<State> {
    const { host } = this.#generation
    const stream = host.runtime.stream(graph, input, options)
    void stream.outcome.finally(this.#generation.begin())
    return stream
  }

  /** Reads, checks and compiles a flow. @throws FlowError with every fault of the document. */
  loadFlow(file: string): Promise<{ readonly flow: CheckedFlow; readonly graph: FlowGraph }> {
    return this.#load((host) => host.loadFlow(file))
  }

  /** Checks and compiles a flow that is at hand as text. @throws FlowError with every fault of the document. */
  compile(
    document: string,
    options?: DocumentOptions,
  ): Promise<{ readonly flow: CheckedFlow; readonly graph: FlowGraph }> {
    return this.#load((host) => host.compile(document, options))
  }

  /** What is on this machine now: tools, encoders, what `explain` and `check` say. Another one after a reload. */
  get host(): Host {
    return this.#generation.host
  }

  /**
   * What is on this machine now, for work that a reload must not part: a flow that {@link Host.compile} compiles runs on the
   * {@link Host.runtime} of the same host. Unlike what {@link loadFlow} and {@link compile} hand back, such a flow keeps no plugin alive
   * and must not run after `release`.
   */
  hold(): HeldHost {
    const { host } = this.#generation
    return { host, release: this.#generation.begin() }
  }

  /**
   * Loads the policy file, manifests and tools anew. Runs under way keep what they began with; plugins of before end when the
   * last of these runs has.
   *
   * @throws SluiceError for whatever is wrong; then nothing has changed.
   */
  reload(): Promise<void> {
    const reloaded = this.#reloading.then(() => this.#reload())
    this.#reloading = reloaded.catch(() => {})
    return reloaded
  }

  /** Ends every run before its next call or superstep, and then all plugins. A thread goes on elsewhere. */
  async close(): Promise<void> {
    this.#stopListening()
    await this.#reloading
    await Promise.all([...this.#generations].map((generation) => generation.close()))
    await this.#closeLog()
  }

  async #load(
    load: (host: Host) => Promise<LoadedFlow>,
  ): Promise<{ readonly flow: CheckedFlow; readonly graph: FlowGraph }> {
    const generation = this.#generation
    const end = generation.begin()
    try {
      const { flow, graph, callsPlugins } = await load(generation.host)
      if (callsPlugins) generation.keep()
      return { flow, graph }
    } finally {
      end()
    }
  }

  async #reload(): Promise<void> {
    const host = await openHost(this.#options)
    const last = this.#generation
    this.#generation = this.#generationOf(host)
    last.retire()
  }

  #generationOf(host: Host): Generation {
    const generation = new Generation(host, (closed) => this.#generations.delete(closed))
    this.#generations.add(generation)
    return generation
  }

  async #reloadAndTell(): Promise<void> {
    const { policies, onWarning = (message: string) => process.emitWarning(message) } = this.#options
    await this.reload().catch((error: unknown) => {
      onWarning(
        `${policies ?? 'what is installed'} was not loaded anew, and what was loaded stays: ${messageOf(error)}`,
      )
    })
  }

  async #during<Result>(work: (runtime: Runtime) => Promise<Result>): Promise<Result> {
    const end = this.#generation.begin()
    try {
      return await work(this.current)
    } finally {
      end()
    }
  }
}
