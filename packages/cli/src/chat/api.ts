import { isObject, type JsonObject, messageOf, SluiceError } from '@sluice/core'

/** The HTTP API of a server, spoken by one caller. */
export class Api {
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>

  /** @throws SluiceError `CLI_SERVER` for an address that is none. */
  constructor(url: string, token: string | undefined) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
      throw wrong(`--url ${url} is no address of a server; give one such as http://127.0.0.1:4319`)
    this.#base = url.replace(/\/$/, '')
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  }

  async get(path: string): Promise<JsonObject> {
    return (await this.request(path)).json() as Promise<JsonObject>
  }

  async post(path: string, body: object): Promise<JsonObject> {
    return (await this.request(path, { body })).json() as Promise<JsonObject>
  }

  /** @throws SluiceError with the code that the server gave; `CLI_SERVER` where it gave none, or cannot be asked. */
  async request(
    path: string,
    { body, headers = {} }: { readonly body?: object; readonly headers?: Readonly<Record<string, string>> } = {},
  ): Promise<Response> {
    const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    const init: RequestInit = { ...sent, headers: { ...this.#headers, ...type, ...headers } }
    const response = await fetch(this.#base + path, init).catch((error: Error) => {
      throw wrong(`the server at ${this.#base} cannot be asked: ${messageOf(error.cause ?? error)}`)
    })
    if (!response.ok) throw await this.#refusal(response)
    return response
  }

  async #refusal(response: Response): Promise<SluiceError> {
    const said: unknown = await response.json().catch(() => undefined)
    const error = isObject(said) && isObject(said.error) ? said.error : undefined
    if (typeof error?.code !== 'string')
      return wrong(`${this.#base} answers with ${response.status}, as no sluice does`)
    return new SluiceError(error.code, String(error.message))
  }
}

export const wrong = (why: string): SluiceError => new SluiceError('CLI_SERVER', `${why}.`)
