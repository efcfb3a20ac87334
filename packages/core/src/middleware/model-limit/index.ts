import type { ModelMiddlewareContext } from '../contexts.ts'
import { Middleware } from '../middleware.ts'
import { requireCount, requireWord } from '../options.ts'
import { readBy, readMembers } from '../reading.ts'

export interface ModelLimitOptions {
  /** Model calls of one turn: an input and all runs that carry it to its end. */
  readonly perTurn?: number
  /** Model calls of the thread, over all its turns. */
  readonly perThread?: number
  /** At the limit, the call fails (`fail`, without it), or a text stands in for the answer (`answer`), which ends an agent. */
  readonly atLimit?: 'fail' | 'answer'
  /** Names it; two in one graph need two names. */
  readonly name?: string
}

interface Counts {
  readonly thread: number
  /** The last turn that was counted, by the id of its outermost run. */
  readonly turn: string
  readonly inTurn: number
}

const NONE: Counts = { thread: 0, turn: '', inTurn: 0 }
const counts = readBy((value): Counts => (value === undefined ? NONE : (value as Counts)))

/**
 * Lets so many model calls of a turn, or of a thread, be made. Each attempt counts, and each that a wrap before it makes. The count
 * is kept with the thread, so a pause, a crash and another process do not begin it anew, and parallel calls cannot slip past it.
 */
export class ModelLimitMiddleware extends Middleware<unknown, unknown, Counts> {
  override readonly name: string
  override readonly kept = { scope: 'thread', schema: counts } as const
  readonly #options: ModelLimitOptions

  /** @throws TypeError where no limit is given, or for an option that there is not; RangeError for one that is no whole number of 1 or more. */
  constructor(options: ModelLimitOptions) {
    super()
    const { perTurn, perThread, atLimit = 'fail', name = 'ModelLimitMiddleware' } = options
    readMembers(options, ['perTurn', 'perThread', 'atLimit', 'name'], name)
    if (perTurn === undefined && perThread === undefined) throw new TypeError(`${name}: give perTurn or perThread.`)
    if (perTurn !== undefined) requireCount(name, 'perTurn', perTurn)
    if (perThread !== undefined) requireCount(name, 'perThread', perThread)
    requireWord(name, 'atLimit', atLimit, ['fail', 'answer'])
    this.name = name
    this.#options = options
  }

  override beforeModel(ctx: ModelMiddlewareContext<unknown, unknown, Counts>) {
    // Only what is let through is counted, so a call that was counted before is one that was let through before.
    if (ctx.revisit) return undefined
    const { perTurn = Number.POSITIVE_INFINITY, perThread = Number.POSITIVE_INFINITY, atLimit } = this.#options
    const { thread, turn, inTurn } = ctx.kept.value
    const soFar = turn === ctx.rootRunId ? inTurn : 0
    const spent =
      soFar >= perTurn
        ? `${perTurn} model calls in a turn`
        : thread >= perThread && `${perThread} model calls in a thread`
    if (spent) {
      const why = `the limit of ${spent} is reached`
      return atLimit === 'answer'
        ? ctx.answer({ content: `I stop here: ${why}.`, finish_reason: 'limit' })
        : ctx.reject(why)
    }
    ctx.kept.update(() => ({ thread: thread + 1, turn: ctx.rootRunId, inTurn: soFar + 1 }))
    return undefined
  }
}
