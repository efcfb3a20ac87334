import {
  errorLine,
  FAULT,
  isTooLong,
  MAX_LINE_BYTES,
  notificationLine,
  PROTOCOL,
  requestLine,
  resultLine,
  type WireError,
} from '../wire/frames.ts'
import type { Outbox } from '../wire/outbox.ts'
import { Context, type Link } from './context.ts'
import { WireFault, wireErrorOf } from './fault.ts'
import { invoke, isThenable, type Served } from './invoke.ts'

/** A frame as it comes in; the host is the one that checks, so its frames are taken as they are. */
interface Frame {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly [key: string]: unknown }
  readonly result?: unknown
  readonly error?: WireError
}

interface Asked {
  readonly call: number
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

export interface SessionOptions {
  readonly served: Served
  readonly outbox: Outbox
  readonly shutdown: (() => unknown) | undefined
  /** Ends the program, once everything is written. */
  exit(): void
}

/** A plugin's side of the wire, from the first line to the last. */
export class Session implements Link {
  readonly #options: SessionOptions
  readonly #calls = new Map<number, Context>()
  readonly #asked = new Map<number, Asked>()
  #capabilities: readonly unknown[] = []
  #nextId = 1
  #ending = false

  constructor(options: SessionOptions) {
    this.#options = options
  }

  receive(line: string): void {
    if (line.trim() === '') return
    const frame: Frame = JSON.parse(line)
    if (frame.method === undefined) this.#settle(frame)
    else if (frame.method === 'cancel') this.#cancel(frame.params?.call as number)
    else if (frame.id !== undefined) this.#serve(frame.id, frame.method, frame.params ?? {})
  }

  notify(method: string, params: object): void {
    this.#options.outbox.send(notificationLine(method, textOf(params, `this ${method}`)))
  }

  request(call: number, method: string, params: object): Promise<unknown> {
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      this.#options.outbox.send(requestLine(id, method, textOf(params, `this ${method}`)))
      this.#asked.set(id, { call, resolve, reject })
    })
  }

  granted(capability: string): boolean {
    return this.#capabilities.includes(capability)
  }

  /** Aborts what is being served, lets the author close what is open, and ends. */
  async end(id?: number): Promise<void> {
    if (this.#ending) return
    this.#ending = true
    for (const ctx of this.#calls.values()) Context.abort(ctx)
    try {
      await this.#options.shutdown?.()
      if (id !== undefined) this.#answer(id, null)
    } catch (error) {
      if (id === undefined) console.error(error)
      else this.#fail(id, error)
    }
    this.#options.exit()
  }

  #serve(id: number, method: string, params: { readonly [key: string]: unknown }): void {
    if (method === 'init') {
      this.#capabilities = params.capabilities as readonly unknown[]
      this.#answer(id, { protocol: PROTOCOL, selfTest: true })
    } else if (method === 'shutdown') this.end(id)
    else this.#work(id, method, params)
  }

  #work(id: number, method: string, params: { readonly [key: string]: unknown }): void {
    const ctx = new Context(this, id, method, params)
    this.#calls.set(id, ctx)
    try {
      const answer = invoke(this.#options.served, method, params, ctx)
      if (isThenable(answer)) {
        answer.then(
          (value) => this.#answer(id, value, ctx),
          (error) => this.#fail(id, error, ctx),
        )
      } else this.#answer(id, answer, ctx)
    } catch (error) {
      this.#fail(id, error, ctx)
    }
  }

  #answer(id: number, value: unknown, ctx?: Context): void {
    this.#calls.delete(id)
    const answer = ctx === undefined ? value : Context.close(ctx, value)
    this.#options.outbox.send(answerLine(id, answer))
  }

  #fail(id: number, error: unknown, ctx?: Context): void {
    this.#calls.delete(id)
    if (ctx !== undefined) Context.close(ctx)
    this.#options.outbox.send(errorLine(id, wireErrorOf(error)))
  }

  #cancel(call: number): void {
    const ctx = this.#calls.get(call)
    if (ctx === undefined) return
    Context.abort(ctx)
    for (const [id, asked] of this.#asked) {
      if (asked.call !== call) continue
      this.#asked.delete(id)
      asked.reject(new WireFault(FAULT.cancelled, 'the call this was asked in was given up'))
    }
  }

  #settle({ id, result, error }: Frame): void {
    const asked = this.#asked.get(id as number)
    if (asked === undefined) return
    this.#asked.delete(id as number)
    if (error === undefined) asked.resolve(result)
    else asked.reject(errorOf(error))
  }
}

/** The line that answers a call; an answer that cannot be sent becomes an error that says why. */
function answerLine(id: number, value: unknown): string {
  try {
    return resultLine(id, textOf(value ?? null, 'the answer'))
  } catch (error) {
    return errorLine(id, wireErrorOf(error))
  }
}

function textOf(value: unknown, what: string): string {
  const text = JSON.stringify(value)
  if (text === undefined) throw new TypeError(`${what} is a ${typeof value}, which is no JSON`)
  if (isTooLong(text)) throw new WireFault(FAULT.tooLong, `${what} is longer than ${MAX_LINE_BYTES} bytes`)
  return text
}

function errorOf({ message, data }: WireError): Error {
  const error = new Error(message)
  if (data?.name !== undefined) error.name = data.name
  return data?.code === undefined ? error : Object.assign(error, { code: data.code })
}
