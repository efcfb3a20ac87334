import type { ToolMiddlewareContext } from '../contexts.ts'
import { Middleware } from '../middleware.ts'
import { readBy, readMembers } from '../reading.ts'

export interface ToolLimitOptions {
  /** Tool calls in one turn, of all tools together: a whole number from 0, or `Infinity`; 50 without it. */
  readonly maxCalls?: number
  /** The same for single tools, by name. A tool that is not named here has no limit of its own. */
  readonly perTool?: Readonly<Record<string, number>>
  /** Names it where there are two; `ToolLimitMiddleware` without it. */
  readonly name?: string
}

interface Counts {
  readonly total: number
  /** Of the tools that have a limit of their own. */
  readonly perTool: Readonly<Record<string, number>>
}

const counts = readBy((value): Counts => (value === undefined ? { total: 0, perTool: {} } : (value as Counts)))

/**
 * Lets so many tool calls of a turn run and refuses the rest, which a model reads as the result. A turn is one input with all
 * pauses, retries, sub-graphs and sub-agents on its way; the count is kept with the thread. A call that is refused here is not
 * counted; one that another middleware or a policy refuses later is.
 *
 * @throws TypeError for an unknown option; RangeError for a limit that is neither a whole number from 0 nor `Infinity`.
 */
export class ToolLimitMiddleware extends Middleware<unknown, unknown, Counts> {
  override readonly name: string
  override readonly aboutTools: readonly string[]
  override readonly kept = { scope: 'turn', schema: counts } as const
  readonly #maxCalls: number
  readonly #perTool: ReadonlyMap<string, number>

  constructor(options: ToolLimitOptions = {}) {
    super()
    readMembers(options, ['maxCalls', 'perTool', 'name'], 'ToolLimitMiddleware')
    const { maxCalls = 50, perTool = {}, name = 'ToolLimitMiddleware' } = options
    requireLimit('maxCalls', maxCalls)
    for (const [tool, limit] of Object.entries(perTool)) requireLimit(`perTool.${tool}`, limit)
    this.name = name
    this.aboutTools = Object.keys(perTool)
    this.#maxCalls = maxCalls
    this.#perTool = new Map(Object.entries(perTool))
  }

  override beforeTool(ctx: ToolMiddlewareContext<unknown, unknown, Counts>) {
    // Only what is let through is counted, so a call that was counted before is one that was let through before.
    if (ctx.revisit) return undefined
    const { toolName } = ctx
    const { total, perTool } = ctx.kept.value
    const limit = this.#perTool.get(toolName)
    const calls = Object.hasOwn(perTool, toolName) ? (perTool[toolName] as number) : 0
    if (total >= this.#maxCalls) {
      return ctx.reject(`the limit of ${this.#maxCalls} tool calls in a turn is reached. Go on without further calls.`)
    }
    if (limit !== undefined && calls >= limit) {
      return ctx.reject(`the limit of ${limit} calls of "${toolName}" in a turn is reached. Go on without it.`)
    }
    const counted = limit === undefined ? perTool : { ...perTool, [toolName]: calls + 1 }
    ctx.kept.update(() => ({ total: total + 1, perTool: counted }))
    return undefined
  }
}

function requireLimit(option: string, limit: number): void {
  if (limit === Number.POSITIVE_INFINITY || (Number.isInteger(limit) && limit >= 0)) return
  throw new RangeError(
    `ToolLimitMiddleware: ${option} is ${String(limit)}; give a whole number from 0, or Infinity for none.`,
  )
}
