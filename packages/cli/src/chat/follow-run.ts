import { setTimeout as sleep } from 'node:timers/promises'
import type { RunEvent } from '@sluice/core'
import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream'
import { type Api, wrong } from './api.ts'

/** How often a stream that was cut off is opened again in a row, and how long it waits before that. */
const MOST_TRIES = 10
const WAIT_MS = 500

/** The events of a run from its first stream on; one that is cut off is opened again where it was. `signal` cancels the run. */
export async function* followRun(api: Api, first: Response, signal: AbortSignal): AsyncGenerator<RunEvent> {
  const [, run] = /\/v1\/runs\/([^/]+)\/events$/.exec(first.headers.get('content-location') ?? '') ?? []
  if (run === undefined) throw wrong('the server does not say which run it has begun')
  const cancel = () => void api.post(`/v1/runs/${run}/cancel`, {}).catch(() => {})
  if (signal.aborted) cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    let seen = '0'
    let response = first
    for (let tries = 0; tries <= MOST_TRIES; tries++) {
      for await (const { id = seen, data } of messagesOf(response)) {
        const event = JSON.parse(data) as RunEvent
        yield event
        if (event.type === 'run_end' && event.path.length === 1) return
        seen = id
        tries = 0
      }
      await sleep(WAIT_MS)
      response = await api
        .request(`/v1/runs/${run}/events`, { headers: { 'last-event-id': seen } })
        .catch(() => response)
    }
    throw wrong(
      `the stream of run ${run} has broken off, and is not to be had again. The run may go on; /asks and /history show it`,
    )
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** Until the stream ends, or breaks off. */
async function* messagesOf({ body }: Response): AsyncGenerator<EventSourceMessage> {
  if (body === null || body.locked) return
  const messages = body.pipeThrough(new TextDecoderStream() as never).pipeThrough(new EventSourceParserStream())
  try {
    yield* messages as unknown as AsyncIterable<EventSourceMessage>
  } catch {
    // Whoever follows opens it again.
  }
}
