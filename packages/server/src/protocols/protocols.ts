import { HttpError } from '../http/errors.ts'
import type { Parts } from '../parts.ts'
import { own } from './own.ts'
import type { ClientProtocol } from './protocol.ts'

/** Those that are built in; plugins bring others. */
export const PROTOCOLS: readonly ClientProtocol[] = [own]

/** @throws HttpError `REQUEST_PROTOCOL`, listing those there are. */
export function protocolOf(_parts: Parts, name: string | undefined): ClientProtocol {
  if (name === undefined) return own
  const found = PROTOCOLS.find((protocol) => protocol.name === name)
  if (found !== undefined) return found
  const known = PROTOCOLS.map((protocol) => protocol.name).join(', ')
  throw new HttpError('REQUEST_PROTOCOL', `there is no protocol "${name.slice(0, 80)}"; protocols are: ${known}.`)
}
