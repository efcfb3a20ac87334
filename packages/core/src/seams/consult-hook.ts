import { isObject } from '../json/json.ts'
import { answerTo, verdictIn } from './asks.ts'
import type { Call } from './call.ts'
import { keeperOf, markOf } from './consult-policy.ts'
import { askerOf, type ConsultedAt, middlewareFailure, ToolDeniedError } from './failure.ts'
import { HOOKS } from './hook-table.ts'
import { readSaid, Said, typeOf, WrongReturn } from './hooks.ts'
import { Kept } from './kept.ts'
import type { Hook, HookConsulted, Layer, Next, WrapOutcome } from './own.ts'
import { never } from './site.ts'
import { isThenable } from './thenable.ts'
import type { Way } from './way.ts'

/** What a hook said, or what it returned where that is the result; `undefined` when it has nothing to say. */
export type Read = Said | { readonly returned: unknown } | undefined

const NOTHING: HookConsulted = { revisit: false, kept: undefined }

/** Where a hook is consulted, for errors, reports and questions. */
export function hookAt({ subject, input, round }: Call, { middleware }: Layer, { name }: Hook<never>): ConsultedAt {
  const { seam, half } = HOOKS[name]
  return { who: { name: middleware.name }, hook: name, seam, half, subject, input, round }
}

/** Asks one hook; only what it promises is waited for. Whatever goes wrong there ends the run. */
export function consultHook<Told>(
  call: Call,
  layer: Layer,
  hook: Hook<Told>,
  told: Told,
  stepError?: unknown,
  way?: Way,
): Read | Promise<Read> {
  const asked = call.asking !== undefined && call.asking.asked.length > 0
  if (asked || layer.middleware.kept !== undefined) return consultAlone(call, layer, hook, told, stepError, way)
  try {
    const returned = runHook(call, layer, hook, told, NOTHING)
    if (returned === undefined) return undefined
    return isThenable(returned)
      ? readLater(call, layer, hook, returned, stepError)
      : readSaid(returned, hook.name, layer.middleware.name)
  } catch (failure) {
    return refusalOrFailure(call, layer, hook, failure, stepError)
  }
}

/** Most promise nothing but that they have nothing to say; a function that awaits would make one promise more of it. */
function readLater<Told>(
  call: Call,
  layer: Layer,
  hook: Hook<Told>,
  coming: PromiseLike<unknown>,
  stepError: unknown,
): Promise<Read> {
  const failed = (failure: unknown) => refusalOrFailure(call, layer, hook, failure, stepError)
  return Promise.resolve(coming).then((returned) => {
    if (returned === undefined) return undefined
    try {
      return readSaid(returned, hook.name, layer.middleware.name)
    } catch (failure) {
      return failed(failure)
    }
  }, failed)
}

/** The same for a middleware that keeps something, which is consulted once at a time, or that may have asked about this call. */
async function consultAlone<Told>(
  call: Call,
  layer: Layer,
  hook: Hook<Told>,
  told: Told,
  stepError: unknown,
  way: Way | undefined,
): Promise<Read> {
  const { name, kept: options } = layer.middleware
  const { asking } = call
  const at = hookAt(call, layer, hook)
  const asked =
    asking === undefined || at.half === 'after' ? undefined : await answerTo(asking, askerOf(at.who), call.input)
  if (call.over) return never()
  const verdict = asked && verdictIn(asked)
  if (verdict?.action === 'replace') return new Said('answer', verdict.value)
  if (verdict?.action === 'reject') return new Said('reject', verdict.reason)
  const keeper = options === undefined ? undefined : await keeperOf(at, call, options)
  // What a hook waits for may never come once nobody waits for the call; others of its middleware go on all the same.
  const { ends } = call
  const giveUp = () => keeper?.end()
  ends.addEventListener('abort', giveUp)
  const stay = way?.onEnd(giveUp)
  try {
    if (way?.over ?? call.over) return never()
    const answered = asked?.answer?.value
    const consulted = { answered, revisit: keeper?.again ?? false, kept: keeper?.kept, keeper }
    return readSaid(await runHook(call, layer, hook, told, consulted), hook.name, name)
  } catch (failure) {
    return refusalOrFailure(call, layer, hook, failure, stepError)
  } finally {
    ends.removeEventListener('abort', giveUp)
    stay?.()
    keeper?.end()
  }
}

/** `onInterrupt` answers at once or not at all: a question must not wait for a middleware that waits for something else. */
function runHook<Told>(
  call: Call,
  { middleware }: Layer,
  hook: Hook<Told>,
  told: Told,
  consulted: HookConsulted,
): unknown {
  const returned = hook.run(call, told, consulted)
  if (hook.name !== 'onInterrupt' || !isThenable(returned)) return returned
  returned.then(undefined, () => undefined)
  throw new WrongReturn(
    new TypeError(`${middleware.name}.onInterrupt returned a promise; it answers at once or not at all.`),
  )
}

/** Tells an observer of a failed trip. What it throws or returns is a note. */
export async function observe(call: Call, layer: Layer, error: unknown): Promise<void> {
  const { middleware, observe: hook } = layer
  if (hook === undefined) return
  try {
    readSaid(await hook.run(call, { error }, keptBeside(call, layer, hook)), hook.name, middleware.name)
  } catch (failure) {
    call.site.note(`${middleware.name}.${hook.name}`, failure instanceof WrongReturn ? failure.error : failure)
  }
}

/** Runs a wrap and reads the outcome it returned. */
export async function runWrap(
  call: Call,
  layer: Layer,
  hook: Hook<Next>,
  next: Next,
  until: AbortSignal | undefined,
): Promise<WrapOutcome> {
  const beside = keptBeside(call, layer, hook)
  try {
    const returned = await hook.run(call, next, until === undefined ? beside : { ...beside, until })
    if (isObject(returned) && (returned.ok === true || (returned.ok === false && 'error' in returned)))
      return returned as unknown as WrapOutcome
    throw new WrongReturn(
      new TypeError(
        `${layer.middleware.name}.${hook.name} returned ${typeOf(returned)}; a wrap returns an outcome: what next() gave, { ok: true, value } or { ok: false, error }.`,
      ),
    )
  } catch (failure) {
    return hookFailed(call, hookAt(call, layer, hook), failure)
  }
}

/** What a wrap or an observer keeps: others of it may be consulted meanwhile, so each update is by itself. */
export function keptBeside(call: Call, layer: Layer, hook: Hook<never>): HookConsulted {
  const { kept } = layer.middleware
  if (kept === undefined) return NOTHING
  const at = hookAt(call, layer, hook)
  const [{ kept: store }, name] = [call.site, askerOf(at.who)]
  const mark = markOf(at, hook.name, call)
  return { revisit: store.wasChangedAt(name, mark), kept: new Kept(store, name, kept, mark) }
}

/** A hook threw: a denial of a tool call is a refusal, all else ends the run. */
function refusalOrFailure(call: Call, layer: Layer, hook: Hook<never>, failure: unknown, stepError: unknown) {
  if (hook.name === 'beforeTool' && failure instanceof ToolDeniedError) return new Said('reject', failure.reason)
  return hookFailed(call, hookAt(call, layer, hook), failure, stepError)
}

/** Ends the run: a wrong return with the error that says so, all else as that middleware's failure. */
export function hookFailed(call: Call, at: ConsultedAt, failure: unknown, stepError?: unknown): Promise<never> {
  if (!call.over) {
    call.site.stop(failure instanceof WrongReturn ? failure.error : middlewareFailure(at, failure, stepError))
  }
  return never()
}
