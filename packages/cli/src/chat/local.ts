import { randomUUID } from 'node:crypto'
import {
  type Json,
  type JsonObject,
  MAIN,
  type Principal,
  type RunEvent,
  type RunStream,
  SluiceError,
  type Store,
} from '@sluice/core'
import { type Host, type HostOptions, type LoadedFlow, openHost } from '@sluice/host'
import { asksOf } from '../store/line.ts'
import type { Conversation, OpenAsk, Standing } from './conversation.ts'

export interface LocalOptions {
  /** A document. */
  readonly flow: string
  readonly host: HostOptions
  /** Closed with the conversation. */
  readonly store: Store
  readonly thread?: string
  /** For whom its runs are. */
  readonly principal?: Principal
}

/** A conversation with a flow that runs in this process. @throws SluiceError for whatever is wrong with a file or a flag. */
export async function openLocal({
  flow,
  host: options,
  store,
  thread,
  principal,
}: LocalOptions): Promise<LocalConversation> {
  const host = await openHost({ ...options, store })
  try {
    return new LocalConversation(host, await host.loadFlow(flow), store, { thread, principal })
  } catch (error) {
    await host.close()
    throw error
  }
}

export class LocalConversation implements Conversation {
  thread: string
  readonly #host: Host
  readonly #loaded: LoadedFlow
  readonly #store: Store
  readonly #for: Pick<LocalOptions, 'principal'>

  constructor(
    host: Host,
    loaded: LoadedFlow,
    store: Store,
    { thread = randomUUID(), principal }: Pick<LocalOptions, 'thread' | 'principal'>,
  ) {
    this.#host = host
    this.#loaded = loaded
    this.#store = store
    this.thread = thread
    this.#for = { principal }
  }

  get inputs(): readonly JsonObject[] {
    return this.#loaded.flow.inputs.map(({ schema, title }) => ({ ...schema, title }))
  }

  open(thread: string = randomUUID()): void {
    this.thread = thread
  }

  turn(inputs: JsonObject, signal: AbortSignal): AsyncIterable<RunEvent> {
    const { graph } = this.#loaded
    graph.plan.boundary?.checkInput(inputs)
    return begun(this.#host.runtime.stream(graph, inputs, { ...this.#for, thread: this.thread, signal }))
  }

  answer({ key }: OpenAsk, answer: Json, signal: AbortSignal): AsyncIterable<RunEvent> {
    const resume = new Map([[key, answer]])
    const options = { ...this.#for, thread: this.thread, resume, signal }
    return begun(this.#host.runtime.stream(this.#loaded.graph, undefined, options))
  }

  async asks(): Promise<readonly OpenAsk[]> {
    const line = (await this.#store.lines(this.thread)).find(({ branch }) => branch === MAIN)
    return line === undefined ? [] : asksOf(line)
  }

  async history(): Promise<readonly object[]> {
    const isThere = (await this.#store.lines(this.thread)).length > 0
    return isThere ? this.#host.runtime.history(this.thread) : []
  }

  async policies(): Promise<readonly Standing[]> {
    const standing = new Map<string, { readonly name: string; readonly mode: string; readonly at: string[] }>()
    for (const { name, mode, seam, half } of (await this.#host.explain()).policies) {
      const each = standing.get(name) ?? { name, mode, at: [] }
      each.at.push(`${seam}.${half}`)
      standing.set(name, each)
    }
    return [...standing.values()]
  }

  async close(): Promise<void> {
    await this.#host.close()
    await this.#store.close()
  }
}

/** The events of a run that has begun. @throws SluiceError what refused it where it has not. */
async function* begun(events: RunStream<unknown>): AsyncGenerator<RunEvent> {
  let isBegun = false
  for await (const event of events) {
    isBegun ||= event.type === 'run_start'
    if (!isBegun && event.type === 'run_end') {
      const { code, message = '' } = event.error ?? {}
      throw code === undefined ? new Error(message) : new SluiceError(code, message)
    }
    if (isBegun) yield event
  }
}
