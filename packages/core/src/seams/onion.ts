import { equal } from '../json/equal.ts'
import type { Json } from '../json/json.ts'
import { own } from '../json/own.ts'
import type { Call, SeamSpec } from './call.ts'
import { consultHook, hookAt, hookFailed, observe, type Read, runWrap } from './consult-hook.ts'
import type { Ending } from './consult-policy.ts'
import { type ConsultedAt, nameOf, stepOf } from './failure.ts'
import { Said } from './hooks.ts'
import type { Outcome } from './outcome.ts'
import type { Hook, Layer, Next, NextOptions, Passed, WrapOutcome } from './own.ts'
import { report, warn, whatBecame } from './report.ts'
import { never } from './site.ts'
import { isThenable } from './thenable.ts'
import { readVerdict } from './verdict.ts'
import { Attempt, type Left, type Way } from './way.ts'

/** What the gate does for the onion around its trips. */
export interface Core<Input extends Json, Value> {
  trip(call: Call<Input>, options: NextOptions | undefined, way: Way): Promise<Passed<Value> | Left>
  /** The same where nobody but own middleware watches and nothing is written down; it waits only for what the step promises. */
  tripNow(call: Call<Input>): Passed<Value> | Promise<Passed<Value> | Left>
  refuse(call: Call<Input>, ending: Ending): Outcome<Value> | Promise<'again'>
  fail(call: Call<Input>, ending: Ending, outcome: Outcome<Value>): Outcome<Value> | Promise<never>
  retry(call: Call<Input>, ending: Ending, outcome: Outcome<Value>): Promise<'retry'>
  misfit(call: Call<Input>, at: ConsultedAt, error: unknown): Promise<Passed<Value> | 'again' | undefined>
}

/**
 * Own middleware around the trips of a call, in list order: each its `before`, its wrap around the rest, its `after` on the way
 * out.
 */
export class Onion<Input extends Json, Value> {
  readonly #spec: SeamSpec<Input, Value>
  readonly #layers: readonly Layer[]
  readonly #rescuers: readonly Layer[]
  readonly #observers: readonly Layer[]
  readonly #core: Core<Input, Value>

  constructor(spec: SeamSpec<Input, Value>, layers: readonly Layer[], core: Core<Input, Value>) {
    this.#spec = spec
    this.#layers = layers
    this.#rescuers = layers.filter(({ rescue }) => rescue !== undefined)
    this.#observers = layers.filter(({ observe }) => observe !== undefined).reverse()
    this.#core = core
  }

  /** One attempt from the top: what it passed on, or why it was left. */
  around(call: Call<Input>): Promise<Passed<Value> | Left> {
    return this.#goOn(call, (attempt) => this.#enter(attempt, attempt, 0, undefined))
  }

  #goOn(call: Call<Input>, way: (attempt: Attempt<Input>) => Promise<Passed<Value>>): Promise<Passed<Value> | Left> {
    return new Promise((resolve, reject) => {
      const attempt = new Attempt(call, resolve)
      way(attempt).then((passed) => {
        attempt.end()
        resolve(passed)
      }, reject)
    })
  }

  /** The way on from a `before` that said something, or promised to. */
  async #saidIn(attempt: Attempt<Input>, i: number, coming: Read | Promise<Read>): Promise<Passed<Value>> {
    const layer = this.#layers[i] as Layer
    const read = await coming
    if (attempt.over) return never()
    const at = hookAt(attempt.call, layer, layer.before as Hook<undefined>)
    const passed = read === undefined ? undefined : await this.#wayIn(attempt, attempt, at, read)
    return this.#out(attempt, attempt, passed ?? (await this.#enter(attempt, attempt, i + 1, undefined)), i, 0)
  }

  /** The way on from a trip that promised something. */
  async #made(attempt: Attempt<Input>, trip: Promise<Passed<Value> | Left>): Promise<Passed<Value>> {
    return this.#out(attempt, attempt, await this.#unlessLeft(attempt, attempt, trip), this.#layers.length - 1, 0)
  }

  /** The way on from an `after` that said something, or promised to. */
  async #saidOut(
    attempt: Attempt<Input>,
    i: number,
    coming: Read | Promise<Read>,
    passed: Passed<Value>,
  ): Promise<Passed<Value>> {
    const layer = this.#layers[i] as Layer
    const read = await coming
    if (attempt.over) return never()
    const at = hookAt(attempt.call, layer, layer.after as Hook<{ readonly value: unknown }>)
    const left = read instanceof Said ? await this.#wayOut(attempt, attempt, at, read, passed) : passed
    return this.#out(attempt, attempt, left, i - 1, 0)
  }

  /**
   * One attempt that waits for nothing, as long as hooks say and promise nothing and the step does not promise; from where one
   * does, the rest of the way. It walks beside `#enter` and `#out`, which have to be async: made of those, a call with hooks that
   * say nothing would cost a promise and an await for each.
   */
  glide(call: Call<Input>): Passed<Value> | Promise<Passed<Value> | Left> {
    const layers = this.#layers
    for (let i = 0; i < layers.length; i++) {
      const { before } = layers[i] as Layer
      if (before === undefined) continue
      const read = consultHook(call, layers[i] as Layer, before, undefined)
      if (call.over) return never()
      if (read !== undefined) return this.#goOn(call, (attempt) => this.#saidIn(attempt, i, read))
    }
    if (call.over) return never()
    const trip = this.#core.tripNow(call)
    if (isThenable(trip)) return this.#goOn(call, (attempt) => this.#made(attempt, trip))
    const { outcome } = trip
    if (!outcome.ok || this.#spec.judged?.(outcome) === false) return trip
    call.substituted = trip.substituted
    const told = { value: this.#show(outcome.value) }
    for (let i = layers.length - 1; i >= 0; i--) {
      const { after } = layers[i] as Layer
      if (after === undefined) continue
      const read = consultHook(call, layers[i] as Layer, after, told)
      if (call.over) return never()
      if (read !== undefined) return this.#goOn(call, (attempt) => this.#saidOut(attempt, i, read, trip))
    }
    return trip
  }

  /** A trip failed. What the first hook that does something about it makes of that; `undefined` when none does. */
  async rescue(
    call: Call<Input>,
    failed: Outcome<Value> & { ok: false },
    way: Way | undefined,
  ): Promise<Passed<Value> | Left | undefined> {
    const { error } = failed
    const over = () => way?.over ?? call.over
    for (const layer of this.#observers) {
      await observe(call, layer, error)
      if (over()) return never()
    }
    for (const layer of this.#rescuers) {
      const hook = layer.rescue as Hook<{ readonly error: unknown }>
      const read = await consultHook(call, layer, hook, { error }, error, way)
      if (over()) return never()
      if (read === undefined) continue
      const at = hookAt(call, layer, hook)
      if (!(read instanceof Said)) return this.#supply(call, at, read.returned, failed)
      if (read.action === 'fail') return passedOf(await this.#core.fail(call, await endingOf(call, read, at), failed))
      if (mayRetry(call, at)) return this.#core.retry(call, await endingOf(call, read, at), failed)
    }
    return undefined
  }

  /** In from a layer to the trip, and out again as far as that layer. */
  async #enter(
    attempt: Attempt<Input>,
    way: Way,
    from: number,
    options: NextOptions | undefined,
  ): Promise<Passed<Value>> {
    const { call, trips } = attempt
    let passed: Passed<Value> | undefined
    let i = from
    // Whoever is consulted on the way in is so about the trip to come.
    call.trip = trips + 1
    for (; passed === undefined && i < this.#layers.length; i++) {
      const layer = this.#layers[i] as Layer
      if (layer.before !== undefined) {
        const consulted = consultHook(call, layer, layer.before, undefined, undefined, way)
        const read = isThenable(consulted) ? await consulted : consulted
        if (way.over) return never()
        if (read !== undefined) passed = await this.#wayIn(attempt, way, hookAt(call, layer, layer.before), read)
      }
      if (passed === undefined && layer.wrap !== undefined)
        passed = await this.#wrapped(attempt, way, layer, i, options)
    }
    passed ??= await this.#trip(attempt, way, options)
    // A way in that was answered before it came to a trip stands for one, so that the next is told from it.
    if (attempt.trips === trips) attempt.trips++
    return this.#out(attempt, way, passed, i - 1, from)
  }

  /** Out again, from one layer to another, as long as the outcome is one that `after` is consulted on. */
  async #out(
    attempt: Attempt<Input>,
    way: Way,
    trip: Passed<Value>,
    last: number,
    first: number,
  ): Promise<Passed<Value>> {
    let passed = trip
    if (this.#spec.judged?.(passed.outcome) === false) return passed
    for (let i = last; i >= first && passed.outcome.ok; i--) {
      const layer = this.#layers[i] as Layer
      if (layer.after === undefined) continue
      attempt.call.substituted = passed.substituted
      const consulted = consultHook(
        attempt.call,
        layer,
        layer.after,
        { value: this.#show(passed.outcome.value) },
        undefined,
        way,
      )
      const read = isThenable(consulted) ? await consulted : consulted
      if (way.over) return never()
      if (read instanceof Said)
        passed = await this.#wayOut(attempt, way, hookAt(attempt.call, layer, layer.after), read, passed)
    }
    return way.over ? never() : passed
  }

  async #trip(attempt: Attempt<Input>, way: Way, options: NextOptions | undefined): Promise<Passed<Value>> {
    const { call } = attempt
    call.trip = ++attempt.trips
    call.substituted = undefined
    const { outcome, substituted, refused, performed } = await this.#unlessLeft(
      attempt,
      way,
      this.#core.trip(call, options, way),
    )
    return { outcome, substituted, refused, performed, input: call.input }
  }

  async #unlessLeft(attempt: Attempt<Input>, way: Way, trip: Promise<Passed<Value> | Left>): Promise<Passed<Value>> {
    const passed = await trip
    if (way.over) return never()
    return typeof passed === 'string' ? left(attempt, passed) : passed
  }

  /** What a `before` comes to: `undefined` when the call goes on, with another input perhaps. */
  async #wayIn(
    attempt: Attempt<Input>,
    way: Way,
    at: ConsultedAt,
    read: NonNullable<Read>,
  ): Promise<Passed<Value> | undefined> {
    const { call } = attempt
    if (!(read instanceof Said)) return this.#supply(call, at, read.returned, undefined)
    if (read.action === 'answer') return this.#answer(attempt, at, read.value)
    if (read.action === 'replace') return this.#replaceInput(call, at, read.value, read.tell)
    const refused = await this.#core.refuse(call, await endingOf(call, read, at))
    if (way.over) return never()
    return typeof refused === 'string' ? left(attempt, refused) : { ...passedOf(refused), refused: true }
  }

  /** Takes another input over; one that does not fit is the call's own error where its seam says so. */
  async #replaceInput(
    call: Call<Input>,
    at: ConsultedAt,
    value: unknown,
    tell?: Said['tell'],
  ): Promise<Passed<Value> | undefined> {
    const { readInput, misfits } = this.#spec
    const what = `the input that ${nameOf(at.who)} gave`
    try {
      const read = readInput === undefined ? (own(value, what) as Input) : readInput(value as Json, call, what)
      if (equal(read, call.input)) return undefined
      call.input = read
      call.told = tell?.(read) ?? call.told
      report(call, at, { action: 'modify' })
      return undefined
    } catch (misfit) {
      return misfits ? passedOf({ ok: false, error: misfit }) : hookFailed(call, at, misfit)
    }
  }

  async #wayOut(
    attempt: Attempt<Input>,
    way: Way,
    at: ConsultedAt,
    said: Said,
    passed: Passed<Value>,
  ): Promise<Passed<Value>> {
    const { call } = attempt
    const outcome = passed.outcome as Outcome<Value> & { ok: true }
    if (said.action === 'replace') return this.#replaceValue(call, at, said.value, passed, outcome.value)
    const ending = await endingOf(call, said, at)
    if (said.action === 'retry') {
      return mayRetry(call, at) ? this.#unlessLeft(attempt, way, this.#core.retry(call, ending, outcome)) : passed
    }
    if (said.action === 'fail') return passedOf(await this.#core.fail(call, ending, outcome))
    // The result is withheld, and what is said in its place is judged like any other outcome.
    const refused = (await this.#core.refuse(call, ending)) as Outcome<Value>
    return { ...passedOf(refused), refused: true, performed: true }
  }

  async #replaceValue(
    call: Call<Input>,
    at: ConsultedAt,
    given: unknown,
    passed: Passed<Value>,
    from: Value,
  ): Promise<Passed<Value>> {
    let value: Value
    try {
      value = await this.#read(call, at, given, from)
    } catch (failure) {
      return hookFailed(call, at, failure)
    }
    if (value === from || (this.#spec.readOwn === undefined && equal(value as Json, from as Json))) return passed
    report(call, at, { action: 'replace' })
    return { ...passed, outcome: { ok: true, value } }
  }

  /** A wrap and what is inside it. Its `next`s are made one after another, each on the input that the wrap was given. */
  async #wrapped(
    attempt: Attempt<Input>,
    way: Way,
    layer: Layer,
    i: number,
    outer: NextOptions | undefined,
  ): Promise<Passed<Value>> {
    const { call } = attempt
    const hook = layer.wrap as Hook<Next>
    const at = hookAt(call, layer, hook)
    const entered = call.input
    const given = new Map<WrapOutcome, Passed<Value>>()
    const inside = way.inside()
    const go = async (input: unknown, options: NextOptions | undefined): Promise<WrapOutcome> => {
      if (inside.over) return never()
      call.input = entered
      const read = options && (this.#spec.readOptions?.(options, call) ?? options)
      const misfit = input === undefined || input === entered ? undefined : await this.#replaceInput(call, at, input)
      const passed = misfit ?? (await this.#within(attempt, inside.inside(), i + 1, joined(outer, read)))
      if (inside.over) return never()
      const outcome = this.#showOutcome(passed)
      given.set(outcome, passed)
      return outcome
    }
    let last: Promise<unknown> = Promise.resolve()
    const next: Next = (input, options) => {
      const made = last.then(() => go(input, options)).catch((failure) => hookFailed(call, at, failure))
      last = made
      return made
    }
    const returned = await runWrap(call, layer, hook, next, outer?.signal)
    if (way.over) return never()
    inside.end()
    const passed = given.get(returned) ?? (await this.#handedOn(call, at, returned, [...given.values()]))
    // Whoever is consulted from here on is shown the arguments that the outcome came of.
    call.input = (passed.input as Input | undefined) ?? entered
    return passed
  }

  /** What one `next` goes into; it ends with its signal, wherever it is. */
  #within(attempt: Attempt<Input>, way: Way, from: number, options: NextOptions | undefined): Promise<Passed<Value>> {
    const entering = this.#enter(attempt, way, from, options)
    const signal = options?.signal
    if (signal === undefined) return entering
    return new Promise((resolve, reject) => {
      const abort = () => {
        // The step ends by itself, and what looks after failures has its say.
        if (way.performing || way.over) return
        way.end()
        resolve(passedOf({ ok: false, error: signal.reason }))
      }
      signal.addEventListener('abort', abort, { once: true })
      entering.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
      if (signal.aborted) abort()
    })
  }

  /** An outcome that a wrap did not get from its `next`. A refusal handed on stays one. */
  async #handedOn(
    call: Call<Input>,
    at: ConsultedAt,
    returned: WrapOutcome,
    given: readonly Passed<Value>[],
  ): Promise<Passed<Value>> {
    const from = given.findLast(({ outcome }) => outcome.ok) ?? given.at(-1)
    if (returned.ok) return { ...(await this.#supply(call, at, returned.value, from?.outcome)), input: from?.input }
    const { error } = returned
    const refusal = given.find(({ refused, outcome }) => refused && !outcome.ok && outcome.error === error)
    return refusal ?? { outcome: { ok: false, error }, substituted: at.who.name, refused: false }
  }

  /** A result that a hook or a wrap gave. */
  async #supply(
    call: Call<Input>,
    at: ConsultedAt,
    given: unknown,
    from: Outcome<Value> | undefined,
  ): Promise<Passed<Value>> {
    try {
      const value = await this.#read(call, at, given, from?.ok ? from.value : undefined)
      return this.#supplied(call, at, value, from)
    } catch (failure) {
      return hookFailed(call, at, failure)
    }
  }

  /** An answer stands in for the step: it is a result, and never a route. One of a person that does not fit is asked for again. */
  async #answer(attempt: Attempt<Input>, at: ConsultedAt, given: unknown): Promise<Passed<Value>> {
    const { call } = attempt
    try {
      return this.#supplied(call, at, await this.#readResult(call, at, given), undefined)
    } catch (failure) {
      const passed = await this.#core.misfit(call, at, failure)
      if (passed === undefined) return hookFailed(call, at, failure)
      return typeof passed === 'string' ? left(attempt, passed) : passed
    }
  }

  #supplied(call: Call<Input>, at: ConsultedAt, value: Value, from: Outcome<Value> | undefined): Passed<Value> {
    report(call, at, { action: 'replace' })
    warn(call, at, `${nameOf(at.who)} supplied a result for ${stepOf(at)}; ${whatBecame(from)}`)
    return { outcome: { ok: true, value }, substituted: at.who.name, refused: false }
  }

  async #read(call: Call<Input>, at: ConsultedAt, given: unknown, from: Value | undefined): Promise<Value> {
    const { readOwn } = this.#spec
    if (from !== undefined && given === this.#show(from)) return from
    if (readOwn === undefined) return this.#readResult(call, at, given)
    return readOwn(given, call, `the value that ${nameOf(at.who)} gave`, from)
  }

  async #readResult(call: Call<Input>, at: ConsultedAt, given: unknown): Promise<Value> {
    const what = `the value that ${nameOf(at.who)} gave`
    const owned = own(given, what)
    const { readValue } = this.#spec
    return readValue === undefined ? (owned as Value) : readValue(owned, call, what)
  }

  #show(value: Value): unknown {
    return this.#spec.showOwn === undefined ? value : this.#spec.showOwn(value)
  }

  #showOutcome({ outcome, refused, substituted }: Passed<Value>): WrapOutcome {
    if (outcome.ok) {
      const value = this.#show(outcome.value)
      return Object.freeze(substituted === undefined ? { ok: true, value } : { ok: true, value, substituted })
    }
    return Object.freeze(refused ? { ok: false, error: outcome.error, refused } : { ok: false, error: outcome.error })
  }
}

/** What a trip came to by itself. */
export const passedOf = <Value>(outcome: Outcome<Value>): Passed<Value> => ({
  outcome,
  substituted: undefined,
  refused: false,
})

/** The attempt is left; what is under way in it comes to nothing. */
function left<Input extends Json>(attempt: Attempt<Input>, why: Left): Promise<never> {
  attempt.leave(why)
  return never()
}

/** What a hook said, read like any verdict; what is wrong with it is that middleware's failure. */
function endingOf(call: Call, { action, value }: Said, at: ConsultedAt): Ending | Promise<never> {
  const answer =
    action === 'suspend'
      ? { action, ask: value }
      : action === 'retry'
        ? { ...(value as object), action }
        : { action, reason: value }
  try {
    return { verdict: readVerdict(at.seam, at.half, answer) as Ending['verdict'], at }
  } catch (failure) {
    return hookFailed(call, at, failure)
  }
}

function mayRetry(call: Call, at: ConsultedAt): boolean {
  if (call.attempt < call.maxAttempts) return true
  const which = `attempt ${call.attempt} of ${call.maxAttempts} was the last`
  warn(call, at, `${nameOf(at.who)} asked for a retry of ${stepOf(at)}, which is refused: ${which}.`)
  return false
}

/** The options of a `next` inside another one: both may end it, the inner one says who is asked. */
function joined(outer: NextOptions | undefined, inner: NextOptions | undefined): NextOptions | undefined {
  if (outer === undefined || inner === undefined) return inner ?? outer
  const signals = [outer.signal, inner.signal].filter((signal) => signal !== undefined)
  return {
    model: inner.model ?? outer.model,
    signal: signals.length === 2 ? AbortSignal.any(signals) : signals[0],
  }
}
