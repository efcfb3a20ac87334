/** One frame of an event stream. */
export interface SseFrame {
  readonly event?: string
  readonly id?: string
  readonly data: string
}

/** How long a client waits before it comes back, in milliseconds. */
const RETRY_MS = 1_000

/** A proxy may take a stream for dead that says nothing for a minute. */
const PING_EVERY_MS = 15_000

const encoder = new TextEncoder()

/** No text can end its own line and begin another field. */
const oneLine = (text: string): string => text.replace(/[\r\n\0]/g, ' ')

/** Says how long a client that is cut off waits before it comes back, in milliseconds. */
export const retryText = (ms: number): string => `retry: ${ms}\n\n`

export function frameText({ event, id, data }: SseFrame): string {
  const head = `${event === undefined ? '' : `event: ${oneLine(event)}\n`}${id === undefined ? '' : `id: ${oneLine(id)}\n`}`
  const body = /[\r\n]/.test(data) ? data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`) : [`data: ${data}\n`]
  return `${head}${body.join('')}\n`
}

const SSE = 'text/event-stream; charset=utf-8'

/** Whether a response of this type is an event stream; it is where none is named. */
export const isSse = (contentType = SSE): boolean => /^text\/event-stream\b/i.test(contentType)

interface StreamOptions {
  /** Of an event stream unless told. */
  readonly contentType?: string | undefined
  readonly headers: Readonly<Record<string, string>>
  /** The client has gone. */
  readonly onLeave: () => void
}

/** A response that sends what comes as it comes; an event stream has a comment where nothing does for a while. */
export function streamResponse(
  frames: AsyncIterator<string>,
  { contentType = SSE, headers, onLeave }: StreamOptions,
): Response {
  let ping: ReturnType<typeof setInterval> | undefined
  const stop = () => clearInterval(ping)
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      if (!isSse(contentType)) return
      controller.enqueue(encoder.encode(retryText(RETRY_MS)))
      ping = setInterval(() => {
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(encoder.encode(': ping\n\n'))
      }, PING_EVERY_MS)
    },
    async pull(controller) {
      try {
        const { done, value } = await frames.next()
        if (done) {
          stop()
          controller.close()
        } else controller.enqueue(encoder.encode(value))
      } catch (error) {
        stop()
        controller.error(error)
      }
    },
    cancel() {
      stop()
      onLeave()
      void frames.return?.()
    },
  })
  return new Response(body, { headers: { 'content-type': contentType, 'cache-control': 'no-store', ...headers } })
}
