import { type IncomingMessage, request as requestHttp, STATUS_CODES } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { LookupFunction } from 'node:net'
import { pipeline, Readable, Transform } from 'node:stream'
import { SluiceError } from '@sluice/core'

/** Whoever answers is chosen by a stranger, and no answer of a model is longer. */
const MAX_BYTES = 16 * 2 ** 20

/** Statuses whose response has no body. */
const EMPTY: ReadonlySet<number> = new Set([204, 205, 304])

/** One request whose name is looked up by this function, and its response. It follows nothing and unpacks nothing. */
export async function send(url: URL, init: RequestInit, lookup: LookupFunction): Promise<Response> {
  const { method = 'GET', signal, body } = init
  if (body != null && typeof body !== 'string') throw new TypeError('a body is a text here')
  const headers = { ...Object.fromEntries(new Headers(init.headers)), 'accept-encoding': 'identity' }
  return new Promise((resolve, reject) => {
    const ask = url.protocol === 'https:' ? requestHttps : requestHttp
    const asked = ask(url, { method, headers, lookup, agent: false, signal: signal ?? undefined }, (message) => {
      try {
        resolve(responseOf(message))
      } catch (error) {
        message.destroy()
        reject(failure(error, signal))
      }
    })
    asked.once('error', (error) => reject(failure(error, signal)))
    asked.end(body ?? undefined)
  })
}

/** @throws for what a response may not have, such as the status 999. */
function responseOf(message: IncomingMessage): Response {
  const { statusCode: status = 0, rawHeaders } = message
  const init = { status, statusText: STATUS_CODES[status] ?? '', headers: headersOf(rawHeaders) }
  if (EMPTY.has(status)) return new Response(null, init)
  const content = pipeline(message, new Transform({ transform: bounded() }), () => {})
  return new Response(Readable.toWeb(content) as ReadableStream, init)
}

function bounded(): Transform['_transform'] {
  let left = MAX_BYTES
  return (chunk: Buffer, _encoding, done) => {
    left -= chunk.length
    if (left < 0) done(new Error(`it is longer than ${MAX_BYTES} bytes`))
    else done(null, chunk)
  }
}

function headersOf(raw: readonly string[]): Headers {
  const headers = new Headers()
  for (let i = 0; i + 1 < raw.length; i += 2) headers.append(raw[i] as string, raw[i + 1] as string)
  return headers
}

/** As `fetch` fails, for that is how its callers know it. */
function failure(error: unknown, signal: AbortSignal | null | undefined): unknown {
  if (signal?.aborted) return signal.reason
  return error instanceof SluiceError ? error : new TypeError('fetch failed', { cause: error })
}
