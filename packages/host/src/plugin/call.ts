import type { ChatRequest, ChatResponse, Json, JsonObject, LogLevel } from '@sluice/core'

/** A request of a plugin to a model, as it comes over the wire. */
export type ModelQuestion = Omit<ChatRequest, 'model'> & { readonly model?: string }

/** What a plugin may do while it serves one call; what a call does not offer is refused. A `Consultation` is one. */
export interface Asker {
  emitEvent?(name: string, data: unknown): void
  log?(level: LogLevel, message: string): void
  callModel?(request: ModelQuestion): Promise<ChatResponse>
  runTool?(name: string, input: JsonObject): Promise<Json>
  extend?(): void
  /** Its time stands still until `release`: the process it goes to is starting. */
  hold?(): void
  release?(): void
  partial?(chunk: unknown): void
}

/** A call of a plugin that is being served, as far as what it asks for is concerned. */
export interface Serving {
  readonly asker: Asker
  /** Requests of the plugin, made inside this call, that are being served. */
  asked: number
}

/** One call of a plugin, until it is answered or given up. */
export class Call implements Serving {
  readonly id: number
  readonly asker: Asker
  readonly answer: Promise<unknown>
  asked = 0
  resolve!: (result: unknown) => void
  reject!: (error: unknown) => void
  readonly #drop: (call: Call) => void

  constructor(id: number, asker: Asker, drop: (call: Call) => void) {
    this.id = id
    this.asker = asker
    this.#drop = drop
    this.answer = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }

  /** Nobody waits for the answer any more. It is rejected with `error`, or else stays pending. */
  giveUp(error?: unknown): void {
    this.#drop(this)
    if (error !== undefined) this.reject(error)
  }
}

/** The calls of one process: those in flight, and those given up that it still owes an answer. */
export class CallTable {
  readonly #inFlight = new Map<number, Call>()
  readonly #givenUp = new Set<number>()
  readonly #onGivenUp: (call: Call) => void

  /** @param onGivenUp called once for each call that is given up while it is in flight. */
  constructor(onGivenUp: (call: Call) => void) {
    this.#onGivenUp = onGivenUp
  }

  get size(): number {
    return this.#inFlight.size
  }
  get owed(): number {
    return this.#givenUp.size
  }
  /** The call in flight, when there is exactly one. */
  get only(): Call | undefined {
    return this.#inFlight.size === 1 ? this.#inFlight.values().next().value : undefined
  }

  open(id: number, asker: Asker): Call {
    const call = new Call(id, asker, this.#drop)
    this.#inFlight.set(id, call)
    return call
  }

  get(id: unknown): Call | undefined {
    return this.#inFlight.get(id as number)
  }

  /** Takes out the call that an answer belongs to. */
  take(id: number): Call | undefined {
    const call = this.#inFlight.get(id)
    this.#inFlight.delete(id)
    return call
  }

  /** Whether a late answer belongs to a call that was given up; it is then owed no longer. */
  forgive(id: number): boolean {
    return this.#givenUp.delete(id)
  }

  rejectAll(error: unknown): void {
    const calls = [...this.#inFlight.values()]
    this.#inFlight.clear()
    for (const call of calls) call.reject(error)
  }

  readonly #drop = (call: Call): void => {
    if (!this.#inFlight.delete(call.id)) return
    this.#givenUp.add(call.id)
    this.#onGivenUp(call)
  }
}
