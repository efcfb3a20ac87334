import { HOOKS, type HookName } from '../seams/hook-table.ts'
import { Replacement, typeOf } from '../seams/hooks.ts'
import { isOwnMiddleware } from '../seams/own.ts'
import type { Tool } from '../tools/tool.ts'
import type { Middleware } from './middleware.ts'

/** Makes a hook's context for the value as the hooks before it left it. */
type MakeContext<Value> = (value: Value) => unknown

/**
 * Runs a `before…` hook of each middleware in list order, for an own loop outside of a graph: what one puts in place with
 * `ctx.replace` is what the next is shown. Hands back the value as the last one left it.
 *
 * @throws RangeError for `beforeGraph`, and what else is no `before…` hook that may replace a value; TypeError for a hook that
 *   returns anything but nothing or a replacement.
 */
export function runBeforeHooks<Value>(
  middleware: Iterable<Middleware>,
  hook: HookName,
  value: Value,
  makeContext: MakeContext<Value>,
): Promise<Value> {
  return runHooks([...middleware], 'before', hook, value, makeContext)
}

/**
 * The same for an `after…` hook, in reverse order.
 *
 * @throws RangeError for `afterGraph`, and what else is no `after…` hook that may replace a value; TypeError for a hook that
 *   returns anything but nothing or a replacement.
 */
export function runAfterHooks<Value>(
  middleware: Iterable<Middleware>,
  hook: HookName,
  value: Value,
  makeContext: MakeContext<Value>,
): Promise<Value> {
  return runHooks([...middleware].reverse(), 'after', hook, value, makeContext)
}

async function runHooks<Value>(
  middleware: readonly Middleware[],
  half: 'before' | 'after',
  hook: HookName,
  value: Value,
  makeContext: MakeContext<Value>,
): Promise<Value> {
  requireValueHook(half, hook)
  let current = value
  for (const own of middleware) {
    requireMiddleware(own)
    if (typeof own[hook] !== 'function') continue
    const call = own[hook] as (ctx: unknown) => unknown
    const returned = await call.call(own, await makeContext(current))
    if (returned === undefined) continue
    if (!(returned instanceof Replacement)) {
      throw new TypeError(`${own.name}.${hook} returned ${typeOf(returned)}; it may return ctx.replace(…), nothing.`)
    }
    current = returned.value as Value
  }
  return current
}

function requireValueHook(half: 'before' | 'after', hook: HookName): void {
  const fit = Object.entries(HOOKS).flatMap(([name, { says }]) =>
    name.startsWith(half) && (says as readonly string[]).includes('replace') ? [name] : [],
  )
  if (fit.includes(hook)) return
  throw new RangeError(`"${hook}" is no ${half}… hook that replaces a value; those are: ${fit.join(', ')}.`)
}

/**
 * The tools of a middleware list, in list order; nothing is left out.
 *
 * @throws TypeError for an item that is no middleware.
 */
export function collectMiddlewareTools(middleware: Iterable<Middleware>): Tool[] {
  return [...middleware].flatMap((own) => {
    requireMiddleware(own)
    return [...own.tools()]
  })
}

function requireMiddleware(own: unknown): void {
  if (isOwnMiddleware(own)) return
  throw new TypeError(`${typeOf(own)} is no middleware; extend Middleware, or use middleware({ … }).`)
}
