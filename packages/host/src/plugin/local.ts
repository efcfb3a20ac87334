import type { Consultation } from '@sluice/core'
import { Context, invoke, isThenable, type Link, type Served, wireErrorOf } from '@sluice/plugin/local'
import { type Asker, Call, type Serving } from './call.ts'
import { PluginError, PluginHandlerError } from './error.ts'
import type { Peer } from './peer.ts'
import { faultOf, serveAsked } from './served.ts'

export interface LocalPluginOptions {
  readonly plugin: string
  readonly served: Served
  readonly shutdown: (() => unknown) | undefined
  readonly capabilities: readonly string[]
  warn(message: string): void
}

/**
 * A plugin in this process. Its handlers are called with the same `ctx` as in a process of their own, and what they ask for is
 * served by the same rules; only nothing is written down on the way.
 */
export class LocalPlugin implements Peer {
  readonly isLost = false
  readonly #options: LocalPluginOptions
  readonly #live = new Map<LocalCall, Call>()
  #nextId = 1
  #closing: Promise<void> | undefined

  constructor(options: LocalPluginOptions) {
    this.#options = options
  }

  ask(method: string, params: object, asker: Asker): Call {
    const local = this.#open(method, params, asker)
    const call = new Call(local.id, asker, () => {
      this.#live.delete(local)
      local.abandon()
    })
    this.#live.set(local, call)
    this.#answer(local, call)
    return call
  }

  /** Asks a policy. Its answer is there at once if its handler does not wait. */
  consult(consultation: Consultation, params: object): unknown {
    const local = this.#open(consultation.half, params, consultation)
    consultation.onAbandon = () => local.abandon()
    return local.answer()
  }

  async start(): Promise<unknown> {
    return { selfTest: true }
  }

  /** Runs the author's `shutdown`. Calls in flight are rejected, but for consultations, which their run gives up. */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  #open(method: string, params: object, asker: Asker): LocalCall {
    if (this.#closing !== undefined) throw this.#closed()
    return new LocalCall(this.#options, this.#nextId++, method, params, asker)
  }

  /** The handler runs once whoever asks has the call in hand, as over a wire. */
  async #answer(local: LocalCall, call: Call): Promise<void> {
    await undefined
    if (!this.#live.has(local)) return
    try {
      const answer = await local.answer()
      if (this.#live.delete(local)) call.resolve(answer)
    } catch (error) {
      if (this.#live.delete(local)) call.reject(error)
    }
  }

  async #end(): Promise<void> {
    for (const [local, call] of this.#live) {
      local.abandon()
      call.reject(this.#closed())
    }
    this.#live.clear()
    try {
      await this.#options.shutdown?.()
    } catch (error) {
      this.#options.warn(`failed as it was closed: ${faultOf(error).message}`)
    }
  }

  #closed(): PluginError {
    const { plugin } = this.#options
    return new PluginError('PLUGIN_CLOSED', `plugin "${plugin}" was closed.`, { plugin })
  }
}

type Params = { readonly [key: string]: unknown }

/** One call of a handler in this process, and its way back to the host. */
class LocalCall implements Link, Serving {
  readonly id: number
  readonly asker: Asker
  asked = 0
  readonly #options: LocalPluginOptions
  readonly #method: string
  readonly #params: Params
  readonly #ctx: Context
  /** It was answered, or given up: what it asks now is refused. */
  #isOver = false

  constructor(options: LocalPluginOptions, id: number, method: string, params: object, asker: Asker) {
    this.#options = options
    this.id = id
    this.asker = asker
    this.#method = method
    this.#params = params as Params
    this.#ctx = new Context(this, id, method, this.#params)
  }

  /** What the handler answers, or a promise of it. @throws PluginHandlerError for whatever it throws. */
  answer(): unknown {
    try {
      const answer = invoke(this.#options.served, this.#method, this.#params, this.#ctx)
      return isThenable(answer) ? this.#promised(answer) : this.#close(answer)
    } catch (error) {
      throw this.#failed(error)
    }
  }

  abandon(): void {
    this.#isOver = true
    Context.abort(this.#ctx)
  }

  /** Nobody waits for the answer of a report; one that is refused is told to the operator. */
  notify(method: string, params: object): void {
    try {
      serveAsked(method, params as Params, this.#serving, this.#options.capabilities)
    } catch (error) {
      this.#options.warn(`${method} was refused: ${faultOf(error).message}`)
    }
  }

  async request(_call: number, method: string, params: object): Promise<unknown> {
    return serveAsked(method, params as Params, this.#serving, this.#options.capabilities)
  }

  granted(capability: string): boolean {
    return this.#options.capabilities.includes(capability)
  }

  get #serving(): Serving | undefined {
    return this.#isOver ? undefined : this
  }

  async #promised(answer: PromiseLike<unknown>): Promise<unknown> {
    try {
      return this.#close(await answer)
    } catch (error) {
      throw this.#failed(error)
    }
  }

  #close(answer?: unknown): unknown {
    this.#isOver = true
    return Context.close(this.#ctx, answer) ?? null
  }

  #failed(error: unknown): PluginHandlerError {
    this.#close()
    return new PluginHandlerError(this.#options.plugin, wireErrorOf(error), error)
  }
}
