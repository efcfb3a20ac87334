import type { Json } from '../json/json.ts'
import { own } from '../json/own.ts'
import type { Call, SeamSpec } from './call.ts'
import { consultHook, hookAt, hookFailed, observe, type Read, runWrap } from './consult-hook.ts'
import { type ConsultedAt, nameOf, stepOf } from './failure.ts'
import { Said } from './hooks.ts'
import type { Outcome } from './outcome.ts'
import type { Hook, Layer, Next, NextOptions, Passed, WrapOutcome } from './own.ts'
import { report, warn, whatBecame } from './report.ts'
import { never } from './site.ts'
import { isThenable } from './thenable.ts'
import type { Ending } from './walk.ts'

/** Why an attempt was left before it came to an outcome: a granted retry, or a question that was answered at once. */
export type Left = 'retry' | 'again'

/** What the gate does for the onion around its trips. */
export interface Core<Input extends Json, Value> {
  trip(call: Call<Input>, options: NextOptions | undefined): Promise<Passed<Value> | Left>
  /** The same where nobody but own middleware watches and nothing is written down; it waits only for what the step promises. */
  tripNow(call: Call<Input>): Passed<Value> | Promise<Passed<Value> | Left>
  refuse(call: Call<Input>, ending: Ending): Outcome<Value> | Promise<'again'>
  fail(call: Call<Input>, ending: Ending, outcome: Outcome<Value>): Outcome<Value> | Promise<never>
  retry(call: Call<Input>, ending: Ending, outcome: Outcome<Value>): Promise<'retry'>
  misfit(call: Call<Input>, at: ConsultedAt, error: unknown): Promise<Passed<Value> | 'again' | undefined>
}

/** One attempt on its way through the onion. Once it has ended, nothing that hooks of it still do counts. */
class Attempt<Input extends Json> {
  readonly call: Call<Input>
  readonly #leave: (why: Left) => void
  ended = false
  trips = 0

  constructor(call: Call<Input>, leave: (why: Left) => void) {
    this.call = call
    this.#leave = leave
  }

  get over(): boolean {
    return this.ended || this.call.over
  }

  leave(why: Left): Promise<never> {
    if (!this.over) this.#leave(why)
    this.ended = true
    return never()
  }
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
    return this.#goOn(call, (attempt) => this.#enter(attempt, 0, undefined))
  }

  #goOn(call: Call<Input>, way: (attempt: Attempt<Input>) => Promise<Passed<Value>>): Promise<Passed<Value> | Left> {
    return new Promise((resolve, reject) => {
      const attempt = new Attempt(call, resolve)
      way(attempt).then((passed) => {
        attempt.ended = true
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
    const passed = read === undefined ? undefined : await this.#wayIn(attempt, at, read)
    return this.#out(attempt, passed ?? (await this.#enter(attempt, i + 1, undefined)), i, 0)
  }

  /** The way on from a trip that promised something. */
  async #made(attempt: Attempt<Input>, trip: Promise<Passed<Value> | Left>): Promise<Passed<Value>> {
    return this.#out(attempt, await this.#unlessLeft(attempt, trip), this.#layers.length - 1, 0)
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
    const left = read instanceof Said ? await this.#wayOut(attempt, at, read, passed) : passed
    return this.#out(attempt, left, i - 1, 0)
  }

  /**
   * One attempt that waits for nothing, as long as hooks say and promise nothing and the step does not promise; from where one
   * does, the rest of the way.
   */
  glide(call: Call<Input>): Passed<Value> | Promise<Passed<Value> | Left> {
    const layers = this.#layers
    for (let i = 0; i < layers.length; i++) {
      const { before } = layers[i] as Layer
      if (before === undefined) continue
      const read = consultHook(call, layers[i] as Layer, before, undefined)
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
      if (read !== undefined) return this.#goOn(call, (attempt) => this.#saidOut(attempt, i, read, trip))
    }
    return call.over ? never() : trip
  }

  /** A trip failed. What the first hook that does something about it makes of that; `undefined` when none does. */
  async rescue(call: Call<Input>, failed: Outcome<Value> & { ok: false }): Promise<Passed<Value> | Left | undefined> {
    const { error } = failed
    for (const layer of this.#observers) await observe(call, layer, error)
    for (const layer of this.#rescuers) {
      const hook = layer.rescue as Hook<{ readonly error: unknown }>
      const read = await consultHook(call, layer, hook, { error }, error)
      if (call.over) return never()
      if (read === undefined) continue
      const at = hookAt(call, layer, hook)
      if (!(read instanceof Said)) return this.#supply(call, at, read.returned, failed)
      if (read.action === 'fail') return passedOf(await this.#core.fail(call, endingOf(read, at), failed))
      if (mayRetry(call, at)) return this.#core.retry(call, endingOf(read, at), failed)
    }
    return undefined
  }

  /** In from a layer to the trip, and out again as far as that layer. */
  async #enter(attempt: Attempt<Input>, from: number, options: NextOptions | undefined): Promise<Passed<Value>> {
    const { call, trips } = attempt
    let passed: Passed<Value> | undefined
    let i = from
    // Whoever is consulted on the way in is so about the trip to come.
    call.trip = trips + 1
    for (; passed === undefined && i < this.#layers.length; i++) {
      const layer = this.#layers[i] as Layer
      if (layer.before !== undefined) {
        const consulted = consultHook(call, layer, layer.before, undefined)
        const read = isThenable(consulted) ? await consulted : consulted
        if (attempt.over) return never()
        if (read !== undefined) passed = await this.#wayIn(attempt, hookAt(call, layer, layer.before), read)
      }
      if (passed === undefined && layer.wrap !== undefined) passed = await this.#wrapped(attempt, layer, i, options)
    }
    passed ??= await this.#trip(attempt, options)
    // A way in that was answered before it came to a trip stands for one, so that the next is told from it.
    if (attempt.trips === trips) attempt.trips++
    return this.#out(attempt, passed, i - 1, from)
  }

  /** Out again, from one layer to another, as long as the outcome is one that `after` is consulted on. */
  async #out(attempt: Attempt<Input>, trip: Passed<Value>, last: number, first: number): Promise<Passed<Value>> {
    let passed = trip
    if (this.#spec.judged?.(passed.outcome) === false) return passed
    for (let i = last; i >= first && passed.outcome.ok; i--) {
      const layer = this.#layers[i] as Layer
      if (layer.after === undefined) continue
      attempt.call.substituted = passed.substituted
      const consulted = consultHook(attempt.call, layer, layer.after, { value: this.#show(passed.outcome.value) })
      const read = isThenable(consulted) ? await consulted : consulted
      if (attempt.over) return never()
      if (read instanceof Said)
        passed = await this.#wayOut(attempt, hookAt(attempt.call, layer, layer.after), read, passed)
    }
    return attempt.over ? never() : passed
  }

  #trip(attempt: Attempt<Input>, options: NextOptions | undefined): Promise<Passed<Value>> {
    const { call } = attempt
    call.trip = ++attempt.trips
    return this.#unlessLeft(attempt, this.#core.trip(call, options))
  }

  async #unlessLeft(attempt: Attempt<Input>, trip: Promise<Passed<Value> | Left>): Promise<Passed<Value>> {
    const passed = await trip
    if (typeof passed === 'string') return attempt.leave(passed)
    return attempt.over ? never() : passed
  }

  /** What a `before` comes to: `undefined` when the call goes on, with another input perhaps. */
  async #wayIn(attempt: Attempt<Input>, at: ConsultedAt, read: NonNullable<Read>): Promise<Passed<Value> | undefined> {
    const { call } = attempt
    if (!(read instanceof Said)) return this.#supply(call, at, read.returned, undefined)
    if (read.action === 'answer') {
      return this.#supply(call, at, read.value, undefined, (misfit) => this.#misfit(attempt, at, misfit))
    }
    if (read.action === 'replace') return this.#replaceInput(call, at, read.value)
    const refused = await this.#core.refuse(call, endingOf(read, at))
    return typeof refused === 'string' ? attempt.leave(refused) : { ...passedOf(refused), refused: true }
  }

  /** Takes another input over; one that does not fit is the call's own error where its seam says so. */
  async #replaceInput(call: Call<Input>, at: ConsultedAt, value: unknown): Promise<Passed<Value> | undefined> {
    const { readInput, misfits } = this.#spec
    const what = `the input that ${nameOf(at.who)} gave`
    try {
      call.input = readInput === undefined ? (own(value, what) as Input) : readInput(value as Json, call, what)
      report(call, at, { action: 'modify' })
      return undefined
    } catch (misfit) {
      return misfits ? passedOf({ ok: false, error: misfit }) : hookFailed(call, at, misfit)
    }
  }

  async #wayOut(attempt: Attempt<Input>, at: ConsultedAt, said: Said, passed: Passed<Value>): Promise<Passed<Value>> {
    const { call } = attempt
    const outcome = passed.outcome as Outcome<Value> & { ok: true }
    if (said.action === 'retry') {
      if (!mayRetry(call, at)) return passed
      return attempt.leave(await this.#core.retry(call, endingOf(said, at), outcome))
    }
    if (said.action === 'fail') return passedOf(await this.#core.fail(call, endingOf(said, at), outcome))
    if (said.action === 'reject') {
      const refused = await this.#core.refuse(call, endingOf(said, at))
      return { ...passedOf(refused as Outcome<Value>), refused: true }
    }
    const value = await this.#read(call, at, said.value, outcome.value).catch((failure) =>
      hookFailed(call, at, failure),
    )
    report(call, at, { action: 'replace' })
    return { ...passed, outcome: { ok: true, value } }
  }

  /** A wrap and what is inside it. Its `next`s are made one after another, each on the input that the wrap was given. */
  async #wrapped(
    attempt: Attempt<Input>,
    layer: Layer,
    i: number,
    outer: NextOptions | undefined,
  ): Promise<Passed<Value>> {
    const { call } = attempt
    const hook = layer.wrap as Hook<Next>
    const at = hookAt(call, layer, hook)
    const entered = call.input
    const given = new Map<WrapOutcome, Passed<Value>>()
    let done = false
    const go = async (input: unknown, options: NextOptions | undefined): Promise<WrapOutcome> => {
      if (done || attempt.over) return never()
      call.input = entered
      const misfit = input === undefined || input === entered ? undefined : await this.#replaceInput(call, at, input)
      const passed = misfit ?? (await this.#enter(attempt, i + 1, joined(outer, options)))
      if (done || attempt.over) return never()
      const outcome = this.#showOutcome(passed)
      given.set(outcome, passed)
      return outcome
    }
    let last: Promise<unknown> = Promise.resolve()
    const next: Next = (input, options) => {
      const made = last.then(() => go(input, options))
      last = made
      return made
    }
    const returned = await runWrap(call, layer, hook, next, outer?.signal)
    if (attempt.over) return never()
    done = true
    return given.get(returned) ?? this.#handedOn(call, at, returned, [...given.values()])
  }

  /** An outcome that a wrap did not get from its `next`. A refusal handed on stays one. */
  async #handedOn(
    call: Call<Input>,
    at: ConsultedAt,
    returned: WrapOutcome,
    given: readonly Passed<Value>[],
  ): Promise<Passed<Value>> {
    if (returned.ok) return this.#supply(call, at, returned.value, given.findLast(({ outcome }) => outcome.ok)?.outcome)
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
    misfit: (failure: unknown) => Promise<Passed<Value>> = (failure) => hookFailed(call, at, failure),
  ): Promise<Passed<Value>> {
    let value: Value
    try {
      value = await this.#read(call, at, given, from?.ok ? from.value : undefined)
    } catch (failure) {
      return misfit(failure)
    }
    report(call, at, { action: 'replace' })
    warn(call, at, `${nameOf(at.who)} supplied a result for ${stepOf(at)}; ${whatBecame(from)}`)
    return { outcome: { ok: true, value }, substituted: at.who.name, refused: false }
  }

  async #read(call: Call<Input>, at: ConsultedAt, given: unknown, from: Value | undefined): Promise<Value> {
    const { readOwn, readValue } = this.#spec
    const what = `the value that ${nameOf(at.who)} gave`
    if (from !== undefined && given === this.#show(from)) return from
    if (readOwn !== undefined) return readOwn(given, call, what, from)
    const owned = own(given, what)
    return readValue === undefined ? (owned as Value) : readValue(owned, call, what)
  }

  /** The result that a hook gave does not fit: where it was a person's answer, they are asked again. */
  async #misfit(attempt: Attempt<Input>, at: ConsultedAt, failure: unknown): Promise<Passed<Value>> {
    const passed = await this.#core.misfit(attempt.call, at, failure)
    if (passed === undefined) return hookFailed(attempt.call, at, failure)
    return typeof passed === 'string' ? attempt.leave(passed) : passed
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

/** What a hook said, as the verdict that ends a walk. */
function endingOf({ action, value }: Said, at: ConsultedAt): Ending {
  const verdict =
    action === 'suspend'
      ? { action, ask: own(value, `what ${nameOf(at.who)} asks`) }
      : action === 'retry'
        ? { action, ...(value as object) }
        : { action, reason: String(value) }
  return { verdict: verdict as Ending['verdict'], at }
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
