import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { SluiceError } from '@sluice/core'
import { isPublic } from './address.ts'
import { type OpenHosts, openHosts, plainHost, portOf } from './open-hosts.ts'
import { send } from './send.ts'

/**
 * The way out for models of documents that came with a request: over http or https, to addresses of the public internet and to
 * those hosts that the operator has opened. A name is judged by the address that is connected to, at the moment it is.
 */
export class Egress {
  readonly #isOpen: OpenHosts
  readonly #lookup: LookupFunction

  /**
   * @param allowNet private hosts that are open, `host` or `host:port`.
   * @throws SluiceError `ALLOW_NET`.
   */
  constructor(allowNet: readonly string[] = [], lookup: LookupFunction = systemLookup as LookupFunction) {
    this.#isOpen = openHosts(allowNet)
    this.#lookup = lookup
  }

  /** Refuses what can be told from the address alone. @throws SluiceError `MODEL_ADDRESS`. */
  check(url: URL): void {
    const host = plainHost(url.hostname)
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refused('is reached by http or https only')
    if (this.#isOpen(host, portOf(url))) return
    if (isIP(host) === 0 ? /(^|\.)localhost$/.test(host) : !isPublic(host)) throw closed()
  }

  /** As the global `fetch`, for a body that is a text. A redirect is refused: it would lead somewhere that nobody named. */
  readonly fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input)
    this.check(url)
    const response = await send(url, init, this.#lookupFor(url))
    if (response.status < 300 || response.status >= 400) return response
    await response.body?.cancel()
    throw refused('answered with a redirect, and none is followed')
  }

  /** Gives only addresses that are open. Whether a name of this network exists is not told. */
  #lookupFor(url: URL): LookupFunction {
    const port = portOf(url)
    const isNamed = this.#isOpen(plainHost(url.hostname), port)
    return (hostname, options, done) =>
      this.#lookup(hostname, { ...options, all: true }, (error, found) => {
        const addresses = Array.isArray(found) ? found : []
        const open = addresses.filter(({ address }) => isNamed || isPublic(address) || this.#isOpen(address, port))
        const [first] = open
        if (error !== null || first === undefined) done(closed(), [])
        else if (options.all) done(null, open)
        else done(null, first.address, first.family)
      })
  }
}

const refused = (why: string) =>
  new SluiceError('MODEL_ADDRESS', `the model of a flow that comes with a request ${why}.`)

const closed = () => refused('must be at a public address, or at one that the operator has opened')
