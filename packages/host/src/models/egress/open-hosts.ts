import { isIPv6 } from 'node:net'
import { SluiceError } from '@sluice/core'

/** Without brackets and the dot at the end: however it is spelled, one host has one name. */
export const plainHost = (hostname: string): string => hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')

export const portOf = ({ port, protocol }: URL): string => port || (protocol === 'https:' ? '443' : '80')

/** Private hosts that the operator has opened. */
export type OpenHosts = (host: string, port: string) => boolean

/** @param entries `host` or `host:port`. @throws SluiceError `ALLOW_NET` for what is neither. */
export function openHosts(entries: readonly string[]): OpenHosts {
  const open = entries.map(readEntry)
  return (host, port) => open.some((each) => each.host === host && (each.port === undefined || each.port === port))
}

function readEntry(entry: string): { readonly host: string; readonly port?: string } {
  const written = isIPv6(entry) ? `[${entry}]` : entry
  const url = `http://${written}`
  if (!URL.canParse(url) || !/^[^/?#@\\\s]+$/.test(written))
    throw new SluiceError(
      'ALLOW_NET',
      `"${entry}" opens nothing: give a host or an address, with a port or without, such as gpu.internal:8000.`,
    )
  const host = plainHost(new URL(url).hostname)
  // Not of the parsed one: there, 80 goes without saying.
  const [, port] = /:0*(\d+)$/.exec(written.replace(/^\[[^\]]*\]/, '')) ?? []
  return port === undefined ? { host } : { host, port }
}
