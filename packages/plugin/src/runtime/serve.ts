import type { Handlers, ServeOptions } from '../author/handlers.ts'
import { MAX_LINE_BYTES } from '../wire/frames.ts'
import { LineReader } from '../wire/lines.ts'
import { Outbox } from '../wire/outbox.ts'
import { Session } from './session.ts'

let isServing = false

/**
 * Serves a plugin's components over stdin and stdout until the host asks it to end. Handlers run concurrently: nothing
 * keeps two calls apart but what they do themselves. What `console.log` prints goes to stderr, for stdout is the wire.
 *
 * @throws Error when a program calls it a second time.
 */
export function serve(handlers: Handlers, options: ServeOptions = {}): void {
  if (isServing) throw new Error('serve() was called a second time; hand all components to one call.')
  isServing = true
  console.log = console.info = console.debug = console.error

  const { stdin, stdout } = process
  const outbox = new Outbox((text) => stdout.write(text))
  const session = new Session({
    served: { handlers, tools: options.tools ?? {}, listTools: options.listTools },
    outbox,
    shutdown: options.shutdown,
    exit() {
      outbox.flush()
      stdout.write('', () => process.exit(0))
    },
  })
  const reader = new LineReader({
    maxBytes: MAX_LINE_BYTES,
    onLine: (line) => session.receive(line),
    onTooLong() {
      throw new Error(`the host sent a line of more than ${MAX_LINE_BYTES} bytes`)
    },
  })
  // A host that is gone reads no more; there is nobody left to serve.
  stdout.on('error', () => process.exit(0))
  stdin.on('data', (chunk: Buffer) => reader.push(chunk))
  stdin.on('end', () => session.end())
}
