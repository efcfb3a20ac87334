import { type Middleware, middleware } from '../middleware/middleware.ts'
import type { WrapOutcome } from '../seams/own.ts'

/** How a call may be disturbed: it fails before it is made, or its result is lost after it was. */
export type Disturbance = 'fails' | 'loses'

export interface ChaosOptions {
  /** The same seed disturbs the same calls, where they are made in the same order. */
  readonly seed: number
  /** The share of calls that are disturbed, from 0 to 1; 0.2 without it. */
  readonly rate?: number
  /** What is disturbed; models and tools without it. */
  readonly where?: readonly ('node' | 'model' | 'tool')[]
  readonly how?: readonly Disturbance[]
  /** What a disturbed call fails with. */
  readonly error?: (what: string) => Error
}

export interface Chaos extends Middleware {
  /** What was disturbed, in order: `tool search fails`. */
  readonly disturbed: readonly string[]
}

const SEVERE = ['429 Too Many Requests: chaos', '503 Service Unavailable: chaos', 'timed out: chaos']

/**
 * A middleware that disturbs some of the calls it stands around, the same ones for the same seed: to see that retries,
 * fallbacks, limits and continued threads hold.
 *
 * @throws RangeError for a rate that is not between 0 and 1.
 */
export function chaos({
  seed,
  rate = 0.2,
  where = ['model', 'tool'],
  how = ['fails', 'loses'],
  error,
}: ChaosOptions): Chaos {
  if (!(rate >= 0 && rate <= 1)) throw new RangeError(`chaos needs a rate between 0 and 1, not ${rate}.`)
  const random = chance(seed)
  const disturbed: string[] = []
  const around = async <Value>(what: string, next: () => Promise<WrapOutcome<Value>>): Promise<WrapOutcome<Value>> => {
    if (random() >= rate) return next()
    const way = how[Math.floor(random() * how.length)] as Disturbance
    const message = SEVERE[Math.floor(random() * SEVERE.length)] as string
    disturbed.push(`${what} ${way}`)
    if (way === 'loses') await next()
    return { ok: false, error: error === undefined ? new Error(message) : error(what) }
  }
  const made = middleware({
    name: 'chaos',
    ...(where.includes('node')
      ? { wrapNode: (state, next, ctx) => around(`node ${ctx.nodeName}`, () => next(state)) }
      : {}),
    ...(where.includes('model')
      ? { wrapModel: (request, next) => around(`model ${request.model}`, () => next(request)) }
      : {}),
    ...(where.includes('tool')
      ? { wrapTool: (args, next, ctx) => around(`tool ${ctx.toolName}`, () => next(args)) }
      : {}),
  } as Parameters<typeof middleware>[0])
  return Object.assign(made, { disturbed })
}

/** Numbers from 0 to 1 that only the seed decides: a linear congruential generator with the constants of Numerical Recipes. */
function chance(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
