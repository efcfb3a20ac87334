import { STATUS_CODES } from 'node:http'
import { isIPv4 } from 'node:net'
import type { Duplex } from 'node:stream'
import { SluiceError } from '@sluice/core'
import type { ErrorBody } from '../http/errors.ts'

/** Whether an address, or the name in a `host` header, is this machine itself and reached from nowhere else. */
function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return name === 'localhost' || name === '::1' || (isIPv4(name) && name.startsWith('127.'))
}

/** @throws SluiceError `SERVER_OPEN`: whoever reaches that address could run and read everything. */
export function refuseOpen(host: string): void {
  if (isLoopback(host)) return
  throw new SluiceError(
    'SERVER_OPEN',
    `others can reach ${host}, and nobody has to say who they are. Name a file of tokens (--tokens), or listen at 127.0.0.1.`,
  )
}

/**
 * Answers only to the names of this machine. A page from elsewhere whose name has come to mean 127.0.0.1 is of the same origin for a
 * browser, and where callers are not told apart nothing else keeps it out.
 */
export function loopbackOnly<Rest extends readonly unknown[]>(
  fetch: (request: Request, ...rest: Rest) => Response | Promise<Response>,
): typeof fetch {
  return (request, ...rest) => {
    if (isLoopback(new URL(request.url).hostname)) return fetch(request, ...rest)
    const message = 'this server answers to localhost alone, for it does not ask who calls.'
    const body: ErrorBody = { error: { code: 'HOST_UNKNOWN', message }, request: '' }
    return Response.json(body, { status: 403 })
  }
}

const BROKEN: Readonly<Record<string, readonly [status: number, code: string, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'REQUEST_SLOW', 'the request did not come whole in time.'],
  HPE_HEADER_OVERFLOW: [431, 'REQUEST_HEADERS', 'the headers are too large.'],
}

/** What never became a request is answered in the one shape too, and its connection ends. */
export function answerBroken(error: Error & { readonly code?: string }, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const [status, code, message] = BROKEN[error.code ?? ''] ?? [400, 'REQUEST_BROKEN', 'this is no HTTP request.']
  const body = JSON.stringify({ error: { code, message }, request: '' } satisfies ErrorBody)
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}
