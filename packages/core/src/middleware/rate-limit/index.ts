import type { ModelMiddlewareContext, ToolMiddlewareContext } from '../contexts.ts'
import { Middleware } from '../middleware.ts'
import { requireTime } from '../options.ts'
import { readMembers } from '../reading.ts'

/** Counts calls by key over time. It may live in this process or be shared by many; how much it lets through is its own business. */
export interface Limiter {
  /**
   * Takes one call of a key: nothing when it may be made, else how many milliseconds to wait before it is tried again. A call that
   * was not let through takes nothing. What it throws ends the run.
   */
  take(key: string): Limited | undefined | Promise<Limited | undefined>
}

export interface Limited {
  /** Milliseconds, 0 or more. */
  readonly retryAfterMs: number
}

type Context = ModelMiddlewareContext | ToolMiddlewareContext

export interface RateLimitOptions {
  /** What counts: `memoryLimiter(…)` or `limiterOf(…)` of `@sluice/host`, or your own. */
  readonly limiter: Limiter
  /** Whether calls of models are counted: all, or those of these names. */
  readonly models?: boolean | readonly string[]
  /** Whether calls of tools are counted: all, or those of these names. */
  readonly tools?: boolean | readonly string[]
  /** `name`: each model and each tool by itself. `all`: all of them together. `name` without it. */
  readonly by?: 'name' | 'all'
  /** Whose calls are counted together, for example a user of `ctx.context`; everybody's without it. */
  key?(ctx: Context): string
  /** What becomes of a call that is one too many: it is refused, or it waits its turn. `reject` without it. */
  readonly atLimit?: 'reject' | 'wait'
  /** Milliseconds that a call waits at most; one that would have to wait longer is refused. 30,000 without it. */
  readonly maxWaitMs?: number
  /** Names it where there are two; `RateLimitMiddleware` without it. */
  readonly name?: string
}

const OPTIONS = ['limiter', 'models', 'tools', 'by', 'key', 'atLimit', 'maxWaitMs', 'name'] as const

/** A limiter that says "now" is asked again after so long. */
const LEAST_WAIT_MS = 1

/**
 * Lets calls of models and tools through as often as a limiter allows, and refuses the others or lets them wait. Each go at a call
 * is counted, for each is a request to somebody.
 *
 * @throws TypeError without a limiter or for an unknown option, and where neither models nor tools are counted; RangeError for a
 *   word or a time that is none.
 */
export class RateLimitMiddleware extends Middleware {
  override readonly name: string
  override readonly aboutTools: readonly string[]
  readonly #options: RateLimitOptions

  constructor(options: RateLimitOptions) {
    super()
    readMembers(options, OPTIONS, 'RateLimitMiddleware')
    const { limiter, models = false, tools = false, by = 'name', atLimit = 'reject', maxWaitMs = 30_000 } = options
    this.name = options.name ?? 'RateLimitMiddleware'
    if (typeof limiter?.take !== 'function') {
      throw new TypeError(
        `${this.name}: limiter has no take(key); give memoryLimiter({ … }) of @sluice/host, or your own.`,
      )
    }
    if (models === false && tools === false)
      throw new TypeError(`${this.name}: give models, tools or both; it counts nothing.`)
    requireWord(this.name, 'by', by, ['name', 'all'])
    requireWord(this.name, 'atLimit', atLimit, ['reject', 'wait'])
    requireTime(this.name, 'maxWaitMs', maxWaitMs)
    // A hook that has nothing to count is none: the engine takes for one what is a function.
    if (models === false) Object.defineProperty(this, 'beforeModel', { value: undefined })
    if (tools === false) Object.defineProperty(this, 'beforeTool', { value: undefined })
    this.aboutTools = typeof tools === 'boolean' ? [] : tools
    this.#options = options
  }

  override async beforeModel(ctx: ModelMiddlewareContext) {
    const why = await this.#pass(ctx, 'model', ctx.model, this.#options.models)
    return why === undefined ? undefined : ctx.reject(why)
  }

  override async beforeTool(ctx: ToolMiddlewareContext) {
    const why = await this.#pass(ctx, 'tool', ctx.toolName, this.#options.tools)
    return why === undefined ? undefined : ctx.reject(why)
  }

  /** Why the call may not be made; `undefined` once it may. */
  async #pass(
    ctx: Context,
    kind: string,
    name: string,
    counted: RateLimitOptions['models'],
  ): Promise<string | undefined> {
    if (Array.isArray(counted) && !counted.includes(name)) return undefined
    const { limiter, by = 'name', key, atLimit = 'reject', maxWaitMs = 30_000 } = this.#options
    const whose = JSON.stringify([by === 'name' ? `${kind}:${name}` : 'all', ...(key === undefined ? [] : [key(ctx)])])
    for (let waited = 0; ; ) {
      const limited = await limiter.take(whose)
      if (limited === undefined) return undefined
      const ms = Math.max(LEAST_WAIT_MS, Math.ceil(limited.retryAfterMs))
      if (atLimit === 'reject' || waited + ms > maxWaitMs) {
        return `the rate limit of ${by === 'name' ? `${kind} "${name}"` : 'calls'} is reached; try again in ${inSeconds(ms)} s`
      }
      await ctx.wait(ms)
      waited += ms
    }
  }
}

const inSeconds = (ms: number) => Math.ceil(ms / 100) / 10

function requireWord(by: string, option: string, word: string, words: readonly string[]): void {
  if (words.includes(word)) return
  throw new RangeError(`${by}: ${option} is "${word}"; give ${words.map((each) => `"${each}"`).join(' or ')}.`)
}
