import type { Json } from '@sluice/core'
import type { Encoder, Frame } from '@sluice/host'
import { frameText } from '../http/sse.ts'
import type { ClientProtocol } from './protocol.ts'

/** A protocol that a plugin renders. */
export function encoded({ protocol, contentType, start }: Encoder): ClientProtocol {
  const isSse = /^text\/event-stream\b/i.test(contentType)
  const framed = (frames: readonly Frame[]) => frames.map(isSse ? sseFrame : lineFrame)
  return {
    name: protocol,
    contentType,
    leavingCancels: true,
    start(_run, _parts, signal) {
      const rendering = start(signal)
      return {
        event: async (event) => framed(await rendering.encode(event)),
        finish: async () => framed(await rendering.finish()),
      }
    },
  }
}

const sseFrame = ({ event, data }: Frame): string =>
  frameText({ ...(event === undefined ? {} : { event }), data: textOf(data) })

/** What is no event stream has no names of frames: a text as it is, and of anything else a line of JSON. */
const lineFrame = ({ data }: Frame): string => (typeof data === 'string' ? data : `${JSON.stringify(data)}\n`)

const textOf = (data: Json): string => (typeof data === 'string' ? data : JSON.stringify(data))
