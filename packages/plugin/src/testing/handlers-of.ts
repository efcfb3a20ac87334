import type { Handlers } from '../author/handlers.ts'

const found = new Map<string, Handlers>()
let last: Promise<unknown> = Promise.resolve()

/**
 * The handlers that a program hands to the global `serve`, without serving them: imports the program, once.
 *
 * @param program for example `new URL('./gate.mjs', import.meta.url)`.
 * @throws Error when it does not call the global `serve` while it is imported.
 */
export function handlersOf(program: URL): Promise<Handlers> {
  // There is one global: programs are imported one after another.
  const handlers = last.catch(() => undefined).then(() => importedFrom(program.href))
  last = handlers
  return handlers
}

async function importedFrom(href: string): Promise<Handlers> {
  const scope = globalThis as { serve?: (handlers: Handlers) => void }
  const before = scope.serve
  scope.serve = (handlers) => void found.set(href, handlers)
  try {
    await import(href)
  } finally {
    scope.serve = before
  }
  const handlers = found.get(href)
  if (handlers === undefined) throw new Error(`${href} does not call the global serve(…) while it is imported`)
  return handlers
}
