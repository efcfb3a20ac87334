import { HttpError } from '../http/errors.ts'
import type { Parts } from '../parts.ts'
import { agUi } from './ag-ui/ag-ui.ts'
import { aiSdk } from './ai-sdk/ai-sdk.ts'
import { encoded } from './encoded.ts'
import { own } from './own.ts'
import type { ClientProtocol } from './protocol.ts'

const BUILT_IN: readonly ClientProtocol[] = [own, agUi, aiSdk]

/** Those that are built in, and those that plugins render; one of a plugin does not take the place of one that is built in. */
export const protocolNames = ({ runtime }: Pick<Parts, 'runtime'>): readonly string[] => [
  ...new Set([...BUILT_IN.map(({ name }) => name), ...runtime.host.protocols]),
]

/** @throws HttpError `REQUEST_PROTOCOL`, listing those there are. */
export function protocolOf(parts: Parts, name: string | undefined): ClientProtocol {
  if (name === undefined) return own
  const found = BUILT_IN.find((protocol) => protocol.name === name)
  if (found !== undefined) return found
  const known = protocolNames(parts)
  if (known.includes(name)) return encoded(parts.runtime.host.encoder(name))
  throw new HttpError(
    'REQUEST_PROTOCOL',
    `there is no protocol "${name.slice(0, 80)}"; protocols are: ${known.join(', ')}.`,
  )
}
