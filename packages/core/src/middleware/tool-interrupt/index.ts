import { isObject, type Json, type JsonObject } from '../../json/json.ts'
import { Said } from '../../seams/hooks.ts'
import type { Tool } from '../../tools/tool.ts'
import type { ToolMiddlewareContext } from '../contexts.ts'
import { Middleware } from '../middleware.ts'
import { readMembers } from '../reading.ts'
import { DECISIONS, readDecision } from './decision.ts'
import type { ToolPredicate } from './predicates.ts'

export type { ToolDecision } from './decision.ts'
export { allFields, anyField, eq, ge, gt, le, lt, matches, type ToolPredicate } from './predicates.ts'

/** Which calls are asked about. */
export interface InterruptRule {
  /** A tool or its name; `*` for every tool. */
  readonly tool: string | Tool
  /** Which of its calls; every one without it. */
  readonly match?: ToolPredicate
}

export interface ToolInterruptOptions {
  /** A call that any of them is about is asked about. */
  readonly rules: readonly InterruptRule[]
  /** Names it where there are two; `ToolInterruptMiddleware` without it. */
  readonly name?: string
}

/**
 * Asks a person about tool calls before they run. The question is
 * `{ tool, arguments, kind: 'tool_interrupt', toolCallId }`, the answer a {@link ToolDecision}, `true` or `false`; whatever else is
 * answered denies. An answer holds for the arguments that were shown and for nothing else.
 *
 * @throws TypeError for rules that are no list, and for a rule that is none.
 */
export class ToolInterruptMiddleware extends Middleware {
  override readonly name: string
  override readonly aboutTools: readonly string[]
  readonly #rules: readonly InterruptRule[]

  constructor(options: ToolInterruptOptions) {
    super()
    const { rules, name = 'ToolInterruptMiddleware' } = readMembers(
      options,
      ['rules', 'name'],
      'ToolInterruptMiddleware',
    ) as ToolInterruptOptions
    if (!Array.isArray(rules)) throw new TypeError('ToolInterruptMiddleware: rules must be a list of { tool, match? }.')
    this.name = name
    this.#rules = rules.map(readRule)
    // A tool that is given itself cannot be misspelt, and may be another agent's.
    this.aboutTools = rules.flatMap(({ tool }) => (typeof tool === 'string' && tool !== '*' ? [tool] : []))
  }

  override beforeTool(ctx: ToolMiddlewareContext) {
    const { answered, args, tool, toolCallId } = ctx
    if (!shouldInterrupt(this.#rules, tool, args)) return undefined
    if (answered === undefined) return ctx.suspend({ kind: 'tool_interrupt', toolCallId, schema: DECISIONS })
    const decision = readDecision(answered)
    if (decision.action === 'approve') return undefined
    if (decision.action === 'edit') return new Said('replace', { ...args, ...decision.arguments }, edited)
    return ctx.reject(decision.message ?? '')
  }
}

const edited = (args: Json): string => `A reviewer changed the arguments of this call to ${JSON.stringify(args)}`

/**
 * Whether a call is asked about. A predicate fails closed: one that throws, or says anything but `false`, asks.
 *
 * @param args the arguments, validated.
 */
export function shouldInterrupt(rules: readonly InterruptRule[], tool: string | Tool, args: JsonObject = {}): boolean {
  const name = nameOf(tool)
  return rules.some((rule) => {
    const about = nameOf(rule.tool)
    return (about === '*' || about === name) && (rule.match === undefined || asks(rule.match, args))
  })
}

function asks(match: ToolPredicate, args: JsonObject): boolean {
  try {
    return match(args) !== false
  } catch {
    return true
  }
}

const nameOf = (tool: string | Tool): string => (typeof tool === 'string' ? tool : tool.name)

function readRule(rule: unknown, i: number): InterruptRule {
  const { tool, match } = readMembers(rule, ['tool', 'match'], `ToolInterruptMiddleware: rules[${i}]`)
  const name = isObject(tool) ? tool.name : tool
  if (typeof name !== 'string' || name === '') {
    throw new TypeError(`ToolInterruptMiddleware: rules[${i}] needs a tool: a tool, its name, or "*" for all.`)
  }
  if (match !== undefined && typeof match !== 'function') {
    throw new TypeError(
      `ToolInterruptMiddleware: rules[${i}] has a match that is no function; use gt, matches and the like.`,
    )
  }
  return { tool: name, ...(match === undefined ? {} : { match: match as ToolPredicate }) }
}
