import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createServer, type Server, type ServerOptions } from '../server.ts'

/** A new folder with these files, removed after the test. A text that begins with `#!` is executable; an object is JSON. */
export function folderOf(files: Readonly<Record<string, string | object>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-server-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    const file = join(folder, name)
    const text = typeof content === 'string' ? content : JSON.stringify(content)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text, { mode: text.startsWith('#!') ? 0o755 : 0o644 })
  }
  return folder
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body, where it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
  readonly body: any
}

export interface Served {
  readonly server: Server
  readonly folder: string
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Answer>
  post(path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>
  send(path: string, init: RequestInit): Promise<Answer>
}

/**
 * A server without a socket, closed after the test.
 *
 * @param files of a new folder: flows in `flows/`, tools in `tools/`, and what `options` names.
 * @param options names files of that folder by the function's argument.
 */
export async function served(
  files: Readonly<Record<string, string | object>> = {},
  options: (at: (name: string) => string) => ServerOptions = () => ({}),
): Promise<Served> {
  const folder = folderOf({ 'flows/.keep': '', 'tools/.keep': '', ...files })
  const at = (name: string) => join(folder, name)
  const server = await createServer({ flows: at('flows'), toolsDir: at('tools'), ...options(at) })
  onTestFinished(async () => void (await server.close()))
  const send = async (path: string, init: RequestInit): Promise<Answer> => {
    const response = await server.app.request(path, init)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') ?? false
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
  }
  return {
    server,
    folder,
    send,
    get: (path, headers = {}) => send(path, { headers }),
    post: (path, body = {}, headers = {}) =>
      send(path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...headers },
      }),
  }
}

/** The events of a stream as they were sent. */
export function framesOf(
  text: string,
): readonly { readonly event?: string; readonly id?: string; readonly data: string }[] {
  return text
    .split('\n\n')
    .map((frame) => {
      const lines = frame.split('\n')
      const of = (field: string) =>
        lines.filter((line) => line.startsWith(`${field}: `)).map((line) => line.slice(field.length + 2))
      const [event] = of('event')
      const [id] = of('id')
      return {
        ...(event === undefined ? {} : { event }),
        ...(id === undefined ? {} : { id }),
        data: of('data').join('\n'),
      }
    })
    .filter(({ data }) => data !== '')
}
