import type { RunEvent } from '@sluice/core'
import type { RunEntry } from '@sluice/host'
import { HttpError } from '../http/errors.ts'
import { sseResponse } from '../http/sse.ts'
import type { Parts } from '../parts.ts'
import { protocolOf } from './protocols.ts'

interface StreamOptions {
  readonly after: number
  readonly protocol: string | undefined
}

/**
 * Streams a run, one that is there or one that is begun for this. What is wrong is answered before the stream opens.
 *
 * @throws HttpError `REQUEST_PROTOCOL`, and whatever `begin` throws.
 */
export async function eventStream(
  parts: Parts,
  run: string | (() => Promise<RunEntry>),
  { after, protocol: name }: StreamOptions,
): Promise<Response> {
  const protocol = protocolOf(parts, name)
  const entry = typeof run === 'string' ? await parts.log.run(run) : await run()
  if (entry === undefined) throw new HttpError('RUN_UNKNOWN', 'there is no such run, or it is forgotten by now.')
  const { id } = entry
  const gone = new AbortController()
  const rendering = protocol.start(entry)
  async function* frames() {
    for await (const { seq, text } of parts.runs.follow(id, after, gone.signal))
      yield* await rendering.event(JSON.parse(text) as RunEvent, seq)
    if (rendering.finish !== undefined) yield* await rendering.finish()
  }
  const leave = () => {
    gone.abort()
    if (protocol.leavingCancels) void parts.runs.cancel(id)
  }
  const headers = { ...protocol.headers, 'content-location': `/v1/runs/${id}/events` }
  return sseResponse(frames(), headers, leave)
}
