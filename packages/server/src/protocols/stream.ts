import type { RunEvent } from '@sluice/core'
import type { RunEntry } from '@sluice/host'
import { HttpError } from '../http/errors.ts'
import { isSse, retryText, streamResponse } from '../http/sse.ts'
import type { Parts } from '../parts.ts'
import type { ClientProtocol } from './protocol.ts'
import { protocolOf } from './protocols.ts'

const COME_BACK_MS = 3_000

interface StreamOptions {
  readonly after: number
  /** Or the name of one; our own without it. */
  readonly protocol: ClientProtocol | string | undefined
}

/**
 * Streams a run, one that is there or one that is begun for this. What is wrong is answered before the stream opens.
 *
 * @throws HttpError `REQUEST_PROTOCOL`, and whatever `begin` throws.
 */
export async function eventStream(
  parts: Parts,
  run: string | (() => Promise<RunEntry>),
  { after, protocol: named }: StreamOptions,
): Promise<Response> {
  const protocol = typeof named === 'object' ? named : protocolOf(parts, named)
  const isNew = typeof run !== 'string'
  const entry = isNew ? await run() : await parts.log.run(run)
  if (entry === undefined) throw new HttpError('RUN_UNKNOWN', 'there is no such run, or it is forgotten by now.')
  const { id } = entry
  const gone = new AbortController()
  const cancel = () => {
    if (isNew && protocol.leavingCancels) parts.runs.left(id)
  }
  const leave = () => {
    gone.abort()
    cancel()
  }
  const headers = { ...protocol.headers, 'content-location': `/v1/runs/${id}/events` }
  return streamResponse(frames(), { contentType: protocol.contentType, headers, onLeave: leave })

  async function* frames() {
    try {
      const rendering = await protocol.start(entry as RunEntry, parts, gone.signal)
      let isOver = false
      for await (const { seq, text } of parts.runs.follow(id, after, gone.signal)) {
        const event = JSON.parse(text) as RunEvent
        isOver = event.type === 'run_end' && event.path.length === 1
        yield* await rendering.event(event, seq)
      }
      if (!isOver && parts.draining() && !protocol.leavingCancels) {
        // It goes on in another process, which will be there in a moment.
        if (isSse(protocol.contentType)) yield retryText(COME_BACK_MS)
      } else if (rendering.finish !== undefined) yield* await rendering.finish()
    } catch (error) {
      // What a run does may not be shown wrongly: it ends where it cannot be rendered.
      cancel()
      parts.onFault(error, `run ${id}`)
      throw error
    }
  }
}
