import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { type Json, type JsonObject, messageOf, type RunEvent, SluiceError } from '@sluice/core'
import { Api } from './api.ts'
import type { Conversation, OpenAsk, Standing } from './conversation.ts'
import { followRun } from './follow-run.ts'

export interface RemoteOptions {
  readonly url: string
  readonly token?: string
  /** A name among the server's flows, or a document of this machine, which is sent along. */
  readonly flow: string
  readonly thread?: string
}

/** A conversation with a flow that a server runs. @throws SluiceError for a server that does not answer, or has no such flow. */
export async function openRemote({ url, token, flow, thread }: RemoteOptions): Promise<RemoteConversation> {
  const api = new Api(url, token)
  const source = await sourceOf(flow)
  const { inputs } = await api.post('/v1/validate', source)
  return new RemoteConversation(api, source, (inputs ?? []) as unknown as readonly JsonObject[], thread)
}

type Source = { readonly flow: string; readonly format?: 'json' | 'yaml' }

async function sourceOf(flow: string): Promise<Source> {
  const [, extension] = /\.(json|ya?ml)$/.exec(flow) ?? []
  if (extension === undefined) return { flow }
  const text = await readFile(flow, 'utf8').catch((error: unknown) => {
    throw new SluiceError('FLOW_FILE', `the flow ${flow} cannot be read: ${messageOf(error)}.`, { file: flow })
  })
  // A server takes what is one line and no object for a name.
  return { flow: `${text}\n`, format: extension === 'json' ? 'json' : 'yaml' }
}

const STREAM = { accept: 'text/event-stream' }

export class RemoteConversation implements Conversation {
  thread: string
  readonly inputs: readonly JsonObject[]
  readonly #api: Api
  readonly #source: Source

  constructor(api: Api, source: Source, inputs: readonly JsonObject[], thread: string = randomUUID()) {
    this.#api = api
    this.#source = source
    this.inputs = inputs
    this.thread = thread
  }

  open(thread: string = randomUUID()): void {
    this.thread = thread
  }

  turn(inputs: JsonObject, signal: AbortSignal): AsyncIterable<RunEvent> {
    return this.#run('/v1/runs', { ...this.#source, inputs, thread: this.thread }, signal)
  }

  answer({ id = '' }: OpenAsk, answer: Json, signal: AbortSignal): AsyncIterable<RunEvent> {
    return this.#run(`/v1/asks/${encodeURIComponent(id)}/answer`, { answer }, signal)
  }

  async asks(): Promise<readonly OpenAsk[]> {
    const asks = ((await this.#ofThread(''))?.asks ?? []) as unknown as readonly (OpenAsk & { branch?: string })[]
    return asks.filter(({ branch }) => branch === undefined)
  }

  async history(): Promise<readonly object[]> {
    return ((await this.#ofThread('/history'))?.records ?? []) as unknown as readonly object[]
  }

  async policies(): Promise<readonly Standing[]> {
    const { middleware = [] } = await this.#api.get('/v1/capabilities')
    return (middleware as unknown as readonly Installed[]).map(({ name, mode, seams }) => {
      const at = Object.entries(seams).flatMap(([seam, halves]) => halves.map((half) => `${seam}.${half}`))
      return { name, mode, at }
    })
  }

  async close(): Promise<void> {}

  async *#run(path: string, body: object, signal: AbortSignal): AsyncGenerator<RunEvent> {
    yield* followRun(this.#api, await this.#api.request(path, { body, headers: STREAM }), signal)
  }

  /** Nothing of a thread that has not begun. */
  async #ofThread(part: string): Promise<JsonObject | undefined> {
    try {
      return await this.#api.get(`/v1/threads/${encodeURIComponent(this.thread)}${part}`)
    } catch (error) {
      if (error instanceof SluiceError && error.code === 'THREAD_UNKNOWN') return undefined
      throw error
    }
  }
}

type Installed = { readonly name: string; readonly mode: string; readonly seams: Readonly<Record<string, string[]>> }
