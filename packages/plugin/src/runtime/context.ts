import { FAULT } from '../wire/frames.ts'
import { WireFault } from './fault.ts'
import { Keeper } from './keeper.ts'

/** What a context needs of the session its call belongs to. */
export interface Link {
  notify(method: string, params: object): void
  request(call: number, method: string, params: object): Promise<unknown>
  granted(capability: string): boolean
}

type Params = { readonly [key: string]: unknown }

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
const LEVELS = ['debug', 'info', 'warn', 'error']

/**
 * The `ctx` of a handler, whatever its kind: members that a kind does not have are `undefined`. The functions are getters,
 * so that `({ input }, { log }) => …` works, and so that a call pays only for what it reads.
 */
export class Context {
  readonly #link: Link
  readonly #call: number
  readonly #params: Params
  readonly #half: string | undefined
  #controller: AbortController | undefined
  #aborted = false
  #isOver = false
  #keeper: Keeper | undefined

  constructor(link: Link, call: number, method: string, params: Params) {
    this.#link = link
    this.#call = call
    this.#params = params
    this.#half = method === 'before' || method === 'after' ? method : undefined
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#aborted) this.#controller.abort()
    return this.#controller.signal
  }
  get component(): unknown {
    const component = this.#params.component ?? this.#params.node ?? this.#params.config ?? {}
    const { llm_config } = component as Params
    return llm_config === undefined ? component : { ...(component as Params), llmConfig: llm_config }
  }
  get node(): unknown {
    return this.#params.node
  }
  get seam(): unknown {
    return this.#params.seam
  }
  get half(): unknown {
    return this.#half
  }
  get attempt(): unknown {
    return this.#params.attempt
  }
  get maxAttempts(): unknown {
    return this.#params.maxAttempts
  }
  get admits(): unknown {
    return this.#params.admits
  }
  get answered(): unknown {
    return this.#params.answered
  }
  get revisit(): unknown {
    return this.#params.revisit
  }
  get substituted(): unknown {
    return this.#params.substituted
  }
  get labels(): unknown {
    return this.#params.labels
  }
  get kept(): unknown {
    if (this.#half === undefined) return undefined
    this.#keeper ??= new Keeper(this.#params.kept, () => this.#isOver)
    return this.#keeper
  }
  get phase(): unknown {
    return this.#params.phase
  }
  get tool(): unknown {
    return this.#params.tool
  }
  get stream(): unknown {
    return this.#params.stream
  }

  get streamId(): unknown {
    return this.#params.streamId
  }

  get emitEvent() {
    return (name: unknown, data: unknown = null): void => {
      this.#need('emitEvent')
      if (typeof name !== 'string' || !NAME.test(name)) {
        throw new TypeError(`an event is named ${JSON.stringify(name)}; a name matches ${NAME.source}`)
      }
      this.#link.notify('emitEvent', { call: this.#call, name, data })
    }
  }
  get log() {
    return (level: unknown, message: unknown): void => {
      this.#need('log')
      if (!LEVELS.includes(level as string)) {
        throw new TypeError(`${JSON.stringify(level)} is no level to log at; levels are: ${LEVELS.join(', ')}`)
      }
      if (typeof message !== 'string') throw new TypeError('a logged message is text')
      this.#link.notify('log', { call: this.#call, level, message })
    }
  }
  get callModel() {
    return (request: object): Promise<unknown> => this.#ask('callModel', { ...request, call: this.#call })
  }
  get runTool() {
    return (name: string, input: object = {}): Promise<unknown> =>
      this.#ask('runTool', { call: this.#call, name, input })
  }
  get partial() {
    return (chunk: unknown): void => {
      if (this.#params.stream !== true) throw new Error('partial() is for a chat that streams; look at ctx.stream')
      this.#link.notify('partial', { call: this.#call, chunk })
    }
  }
  get extend() {
    return (): void => this.#link.notify('extend', { call: this.#call })
  }

  /** A cancel rejects what a handler may not be waiting for yet; unhandled, that would end a process that serves others. */
  #ask(method: string, params: object): Promise<unknown> {
    const answer = (async () => {
      this.#need(method)
      return this.#link.request(this.#call, method, params)
    })()
    answer.catch(() => {})
    return answer
  }

  #need(capability: string): void {
    if (this.#link.granted(capability)) return
    throw new WireFault(
      FAULT.notGranted,
      `${capability} was not requested; add "${capability}" to "capabilities" in the manifest`,
    )
  }

  /** The verdict as it goes back, with what the policy keeps if it changed that. Changing it afterwards is an error. */
  static close(ctx: Context, verdict?: unknown): unknown {
    ctx.#isOver = true
    return ctx.#keeper === undefined ? verdict : ctx.#keeper.with(verdict)
  }

  /** The host gave the call up, or wants the plugin to end. */
  static abort(ctx: Context): void {
    ctx.#aborted = true
    ctx.#controller?.abort()
  }
}
