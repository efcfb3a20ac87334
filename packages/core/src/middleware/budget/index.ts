import type { ChatRequest, ChatResponse, Usage } from '../../chat/chat.ts'
import { estimateInputTokens, estimateUsage } from '../../chat/usage.ts'
import type { WrapOutcome } from '../../seams/own.ts'
import type { ModelMiddlewareContext } from '../contexts.ts'
import { Middleware, type NextOfModel } from '../middleware.ts'
import { readBy, readMembers } from '../reading.ts'
import { costOf, MODEL_PRICES, type ModelPrice, priceOf } from './prices.ts'

export { MODEL_PRICES, type ModelPrice, PRICES_AS_OF } from './prices.ts'

export interface BudgetOptions {
  /** Tokens, those sent and those received together, that one input and all that follows from it may take: above 0. */
  readonly tokensPerTurn?: number
  /** The same for all turns of a thread together. */
  readonly tokensPerThread?: number
  /** US dollars, above 0. */
  readonly usdPerTurn?: number
  readonly usdPerThread?: number
  /** Prices of your own by model, which go before {@link MODEL_PRICES}. */
  readonly prices?: Readonly<Record<string, ModelPrice>>
  /** What becomes of a call whose price is not known, where there is a budget in dollars. `refuse` without it. */
  readonly unknownModel?: 'refuse' | 'warn'
  /** Whether a call is refused that would not fit by its estimate; without it, once nothing is left. */
  readonly mustFit?: boolean
  /** Tokens that a response is taken to have before it is there, where its request names no `maxTokens`; 1,000 without it. */
  readonly outputTokens?: number
  /** Told after each call what was spent. */
  onSpend?(spend: BudgetSpend): void
  /** Names it where there are two; `BudgetMiddleware` without it. */
  readonly name?: string
}

/** What calls have taken. */
export interface Spent {
  readonly tokens: number
  /** US dollars; 0 where no budget is in dollars. */
  readonly usd: number
  /** Whether some of it is an estimate: a provider did not count, or a call was given up. */
  readonly estimated: boolean
}

export interface BudgetSpend {
  readonly call: Spent
  readonly turn: Spent
  readonly thread: Spent
  /** The model that was asked. */
  readonly model: string
}

/** What is kept with the thread. `open` has, by call, what was set aside for those that are not through. */
interface Ledger {
  readonly turnId: string
  readonly turn: Spent
  readonly thread: Spent
  readonly open: Readonly<Record<string, Spent>>
}

type Context = ModelMiddlewareContext<unknown, unknown, Ledger>

const NOTHING: Spent = { tokens: 0, usd: 0, estimated: false }
const ledger = readBy(
  (value): Ledger =>
    value === undefined ? { turnId: '', turn: NOTHING, thread: NOTHING, open: {} } : (value as Ledger),
)

const OPTIONS = [
  'tokensPerTurn',
  'tokensPerThread',
  'usdPerTurn',
  'usdPerThread',
  'prices',
  'unknownModel',
  'mustFit',
  'outputTokens',
  'onSpend',
  'name',
] as const

/**
 * Counts tokens and dollars of model calls and refuses further ones when a budget is spent. What a call may take is set aside
 * before it is made and settled after it, so calls at the same time do not slip past; the count is kept with the thread. A call
 * that was given up counts as estimated.
 *
 * @throws TypeError for an unknown option, or without any budget; RangeError for a number that is none of the kind it must be.
 */
export class BudgetMiddleware extends Middleware<unknown, unknown, Ledger> {
  override readonly name: string
  override readonly kept = { scope: 'thread', schema: ledger } as const
  readonly #options: BudgetOptions
  readonly #limits: readonly Limit[]
  readonly #inDollars: boolean

  constructor(options: BudgetOptions) {
    super()
    readMembers(options, OPTIONS, 'BudgetMiddleware')
    requireOptions(options)
    this.name = options.name ?? 'BudgetMiddleware'
    this.#options = options
    this.#limits = LIMITS.filter(({ option }) => options[option] !== undefined)
    this.#inDollars = this.#limits.some(({ unit }) => unit === 'usd')
  }

  override beforeModel(ctx: Context) {
    // What was set aside for this very trip still is, or was settled.
    if (ctx.revisit) return undefined
    const price = this.#priceOf(ctx.model)
    if (price === undefined) {
      const why = `there is no price for model "${ctx.model}", and the budget is in dollars; give one in prices`
      if (this.#options.unknownModel !== 'warn') return ctx.reject(why)
      ctx.warn(`${why}. The call counts as free.`)
    }
    const { request, callKey } = ctx
    const inputTokens = estimateInputTokens(request)
    const outputTokens = request.maxTokens ?? this.#options.outputTokens ?? 1_000
    const set = spentOn({ inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, estimated: true }, price)
    const now = current(ctx)
    const why = this.#refusal(now, set)
    if (why !== undefined) return ctx.reject(why)
    ctx.kept.update(() => ({ ...now, open: { ...now.open, [callKey]: set } }))
    return undefined
  }

  override async wrapModel(_request: ChatRequest, next: NextOfModel, ctx: Context): Promise<WrapOutcome<ChatResponse>> {
    const outcome = await next()
    // A call that failed or was refused brought nothing that is paid for.
    if (!outcome.ok) ctx.kept.update((now) => ({ ...now, open: without(now.open, ctx.callKey) }))
    return outcome
  }

  override afterModel(ctx: Context) {
    const { callKey, model, request, response, substituted } = ctx
    const now = ctx.kept.value
    if (!Object.hasOwn(now.open, callKey)) return undefined
    const price = this.#priceOf(model)
    if (price === undefined)
      ctx.warn(`there is no price for model "${model}", which answered; the call counts as free.`)
    const free = substituted !== undefined && response.usage === undefined
    const call = free ? NOTHING : spentOn(response.usage ?? estimateUsage(request, response), price)
    const { turn, thread } = ctx.kept.update(() => ({ ...spend(now, call), open: without(now.open, callKey) }))
    this.#options.onSpend?.({ call, turn, thread, model })
    return undefined
  }

  #priceOf(model: string): ModelPrice | undefined {
    if (!this.#inDollars) return FREE
    return priceOf(model, this.#options.prices ?? {}, MODEL_PRICES)
  }

  /** Why a call may not be made that would take so much; `undefined` when it may. */
  #refusal(now: Ledger, set: Spent): string | undefined {
    const aside = Object.values(now.open).reduce(add, NOTHING)
    for (const { option, unit, over } of this.#limits) {
      const limit = this.#options[option] as number
      const taken = now[over][unit] + aside[unit]
      const budget = `the budget of ${inUnit(limit, unit)} in a ${over}`
      if (taken >= limit) return `${budget} is spent (${inUnit(taken, unit)})`
      if (this.#options.mustFit && taken + set[unit] > limit) {
        return `${budget} has ${inUnit(limit - taken, unit)} left, and this call is estimated at ${inUnit(set[unit], unit)}`
      }
    }
    return undefined
  }
}

interface Limit {
  readonly option: 'tokensPerTurn' | 'tokensPerThread' | 'usdPerTurn' | 'usdPerThread'
  readonly unit: 'tokens' | 'usd'
  readonly over: 'turn' | 'thread'
}

const LIMITS: readonly Limit[] = [
  { option: 'tokensPerTurn', unit: 'tokens', over: 'turn' },
  { option: 'tokensPerThread', unit: 'tokens', over: 'thread' },
  { option: 'usdPerTurn', unit: 'usd', over: 'turn' },
  { option: 'usdPerThread', unit: 'usd', over: 'thread' },
]

const FREE: ModelPrice = { input: 0, output: 0 }

/** The ledger as this call finds it: in a new turn with a new sum, and with what was given up counted. */
function current({ kept: { value }, rootRunId, callKey }: Context): Ledger {
  const anew = value.turnId !== rootRunId
  const lost = Object.entries(value.open).filter(([key]) => anew || key === callKey)
  const counted = lost.reduce((now, [, set]) => spend(now, set), value)
  return {
    turnId: rootRunId,
    turn: anew ? NOTHING : counted.turn,
    thread: counted.thread,
    open: anew ? {} : without(value.open, callKey),
  }
}

const add = (a: Spent, b: Spent): Spent => ({
  tokens: a.tokens + b.tokens,
  usd: a.usd + b.usd,
  estimated: a.estimated || b.estimated,
})

const spend = (now: Ledger, call: Spent): Ledger => ({
  ...now,
  turn: add(now.turn, call),
  thread: add(now.thread, call),
})

function spentOn({ inputTokens, outputTokens, totalTokens, estimated = false }: Usage, price = FREE): Spent {
  return { tokens: totalTokens, usd: costOf(price, inputTokens, outputTokens), estimated }
}

function without(open: Ledger['open'], key: string): Ledger['open'] {
  const { [key]: _, ...rest } = open
  return rest
}

/** Dollars to a millionth, which is what a token costs. */
const inUnit = (amount: number, unit: Limit['unit']): string =>
  unit === 'tokens' ? `${amount} tokens` : `${Number(amount.toFixed(6))} USD`

function requireOptions(options: BudgetOptions): void {
  const budgets = LIMITS.map(({ option }) => [option, options[option]] as const)
  if (budgets.every(([, limit]) => limit === undefined)) {
    throw new TypeError(`BudgetMiddleware: give a budget, one of ${LIMITS.map(({ option }) => option).join(', ')}.`)
  }
  for (const [option, amount] of budgets) requireAbove0(option, amount)
  requireAbove0('outputTokens', options.outputTokens)
  for (const [model, { input, output }] of Object.entries(options.prices ?? {})) {
    for (const [side, price] of Object.entries({ input, output })) {
      if (typeof price === 'number' && price >= 0) continue
      throw new RangeError(
        `BudgetMiddleware: prices["${model}"].${side} is ${price}; give dollars for a million tokens.`,
      )
    }
  }
  const { unknownModel = 'refuse' } = options
  if (unknownModel !== 'refuse' && unknownModel !== 'warn') {
    throw new RangeError(`BudgetMiddleware: unknownModel is "${unknownModel}"; give "refuse" or "warn".`)
  }
}

function requireAbove0(option: string, amount: number | undefined): void {
  if (amount === undefined || (typeof amount === 'number' && amount > 0)) return
  throw new RangeError(`BudgetMiddleware: ${option} is ${amount}; give a number above 0.`)
}
