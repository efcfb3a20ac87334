import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import { SluiceError } from '@sluice/core'
import { RE2JS } from 're2js'
import {
  checkingEnvironment,
  evaluatingEnvironment,
  namesAt,
  principalEnvironment,
  type Site,
  SUBJECT,
} from './shown.ts'
import { isComprehension, walk } from './tree.ts'

/** What an expression reads, by name. */
export interface Values {
  readonly subject: object
  readonly labels: readonly string[]
  readonly input?: unknown
  readonly outcome?: unknown
  readonly attempt?: number
  readonly maxAttempts?: number
  readonly substituted?: string
}

export interface Expression {
  /** @throws SluiceError `POLICY_EXPRESSION` where it cannot be evaluated; no value stands in the text. */
  evaluate(values: Values): unknown
  /** Whether it reads nothing but fields of `subject` that are the same at every call of one call site. */
  readonly readsSiteOnly: boolean
  /** What it comes to at every call of a call site, whatever else the call shows; `undefined` where that matters. */
  atSite(subject: object): unknown
}

/** What is wrong with an expression, and where in it. */
export class ExpressionFault extends Error {
  /** From 0, in UTF-16 units. */
  readonly index: number

  constructor(message: string, index: number) {
    super(message)
    this.index = index
  }
}

/** Elements that one evaluation may go through, all comprehensions together. */
export const MAX_STEPS = 100_000
/** Comprehensions inside of each other. */
const MAX_LOOPS = 3
/** A text of this many characters given to `re` counts as one element. */
const TEXT_STEP = 256

/** What is left of an evaluation's steps. Evaluation is synchronous, so one is under way at a time. */
let steps = 0

class OutOfSteps extends Error {}

function spend(count: number): void {
  steps -= count
  if (steps < 0) throw new OutOfSteps()
}

/** Wraps the lists that a comprehension goes through; its name is in no checking environment. */
const COUNTED = '__counted'

function counted(list: unknown): unknown {
  if (Array.isArray(list)) spend(list.length)
  else if (list instanceof Set || list instanceof Map) spend(list.size)
  else if (typeof list === 'object' && list !== null) spend(Object.keys(list).length)
  return list
}

const patterns = new Map<string, RE2JS>()

function patternOf(text: string): RE2JS {
  const known = patterns.get(text)
  if (known !== undefined) return known
  const pattern = RE2JS.compile(text)
  patterns.set(text, pattern)
  return pattern
}

function re(text: string, pattern: string): boolean {
  if (text.length > TEXT_STEP) spend(text.length / TEXT_STEP)
  return patternOf(pattern).test(text)
}

const MIXED: { readonly [operator: string]: (a: number, b: number) => number } = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
}

/** Numbers of JSON are doubles, and whole numbers in an expression are not: the two may be reckoned with together. */
function withFunctions(environment: Environment): Environment {
  environment.registerFunction('re(string, string): bool', re)
  for (const [operator, reckon] of Object.entries(MIXED)) {
    const handler = (a: number | bigint, b: number | bigint) => reckon(Number(a), Number(b))
    environment.registerOperator(`double ${operator} int`, handler).registerOperator(`int ${operator} double`, handler)
  }
  return environment
}

const checking = new Map<string, Environment>()

function checkingAt(site: Site): Environment {
  const key = `${site.seam}.${site.half} ${site.use}`
  const known = checking.get(key)
  if (known !== undefined) return known
  const environment = checkingEnvironment(site, withFunctions)
  checking.set(key, environment)
  return environment
}

let evaluator: Environment | undefined

const evaluatingOnce = (): Environment => {
  evaluator ??= evaluatingEnvironment((environment) =>
    withFunctions(environment).registerFunction(`${COUNTED}(dyn): dyn`, counted),
  )
  return evaluator
}

/** Fields of `subject` that differ from call to call of one site. */
const OF_ONE_CALL = ['toolCallId', 'key', 'resuming']

/**
 * Compiles an expression for the halves at which it is evaluated.
 *
 * @param sites at least one; the expression has to hold at each.
 * @param wants `bool`: it must say yes or no.
 * @param what names the expression in errors: `when of rule "x"`.
 * @throws ExpressionFault for a text that is no CEL, reads what one of the halves does not show, does not fit its types, uses
 *   `matches`, or says neither yes nor no where it should.
 */
export function compileExpression(
  text: string,
  sites: readonly Site[],
  wants: 'bool' | 'any',
  what: string,
): Expression {
  for (const site of sites) check(text, sceneAt(site), wants)
  const { ast, run } = evaluating(text, what)
  return { readsSiteOnly: readsSiteOnly(ast), evaluate: run, atSite: (subject) => partially(run, subject) }
}

/**
 * Evaluates an expression with what is known of a call site. To read anything else is an error, and errors are what `&&` and `||`
 * of CEL go by the other operand for, in whatever order they stand: a value that comes of it comes of nothing else.
 */
function partially(run: (values: unknown) => unknown, known: object): unknown {
  const subject = { ...known }
  for (const name of OF_ONE_CALL) Object.defineProperty(subject, name, { enumerable: true, get: isUnknown })
  try {
    return run({ subject })
  } catch {
    return undefined
  }
}

function isUnknown(): never {
  throw new TypeError('it differs from call to call')
}

/** Who answers, as an expression is shown them. */
export interface Answerer {
  readonly id: string
  readonly kind: string
  readonly scopes: readonly string[]
  readonly claims?: Readonly<Record<string, unknown>>
}

/**
 * Compiles an expression that says who may answer a question: it reads `principal`, and nothing of the question.
 *
 * @returns whether this one may. @throws there, SluiceError `POLICY_EXPRESSION` where it cannot be evaluated, as for a claim that they
 *   do not have.
 * @throws ExpressionFault as {@link compileExpression} does.
 */
export function compileApprovers(text: string): (principal: Answerer) => boolean {
  principals ??= principalEnvironment(withFunctions)
  check(text, { environment: principals, names: 'there; an expression about who may answer reads: principal' }, 'bool')
  const { run } = evaluating(text, '"approvers"')
  return ({ claims = {}, ...principal }) => run({ principal: { ...principal, claims } }) === true
}

let principals: Environment | undefined

function evaluating(text: string, what: string): { readonly ast: ASTNode; run(values: unknown): unknown } {
  const { ast } = evaluatingOnce().parse(text)
  const evaluate = evaluatingOnce().parse(withCounting(text, ast))
  evaluate.check()
  const run = (values: unknown) => {
    steps = MAX_STEPS
    try {
      return evaluate(values as never)
    } catch (error) {
      throw new SluiceError('POLICY_EXPRESSION', `${what} cannot be evaluated: ${whyNot(error)}.`, {}, error)
    }
  }
  return { ast, run }
}

/** What an expression is checked against. */
interface Scene {
  readonly environment: Environment
  /** Ends the sentence about a name that is not there. */
  readonly names: string
  readonly seam?: Site['seam']
}

const sceneAt = (site: Site): Scene => ({
  environment: checkingAt(site),
  names: `at ${site.seam}.${site.half}; an expression here reads: ${namesAt(site).join(', ')}`,
  seam: site.seam,
})

function check(text: string, { environment, names, seam }: Scene, wants: 'bool' | 'any'): void {
  const parsed = parse(environment, text)
  let loops = 0
  walk(parsed.ast, {
    node(node, depth) {
      checkCall(node)
      if (seam !== undefined) checkField(node, seam)
      if (isComprehension(node)) loops = Math.max(loops, depth + 1)
      if (loops > MAX_LOOPS)
        throw new ExpressionFault(`there are more than ${MAX_LOOPS} loops inside of each other`, node.start)
    },
    name(name, node) {
      if (name === 'cel' || environment.hasVariable(name)) return
      throw new ExpressionFault(`there is no "${name}" ${names}`, node.start)
    },
  })
  const { valid, type, error } = parsed.check()
  if (!valid) throw new ExpressionFault(summaryOf(error), error?.range?.start ?? 0)
  if (wants === 'bool' && type !== 'bool' && type !== 'dyn')
    throw new ExpressionFault(`it must say true or false and gives a value of type ${type}`, 0)
}

function parse(environment: Environment, text: string) {
  try {
    return environment.parse(text)
  } catch (error) {
    throw new ExpressionFault(summaryOf(error), rangeOf(error)?.start ?? 0)
  }
}

/** JavaScript's own patterns can take for ever on a short text. */
function checkCall(node: ASTNode): void {
  if (node.op !== 'call' && node.op !== 'rcall') return
  const [name] = node.args
  if (name === 'matches') {
    throw new ExpressionFault(
      '"matches" may take for ever on some texts; write re(text, "pattern") instead',
      placeOf(node),
    )
  }
  if (name !== 're' || node.op !== 'call') return
  const pattern = node.args[1][1]
  if (pattern === undefined) return
  if (pattern.op !== 'value' || typeof pattern.args !== 'string')
    throw new ExpressionFault('the pattern of "re" must stand there as a text', pattern.start)
  try {
    patternOf(pattern.args)
  } catch (error) {
    throw new ExpressionFault(`this is no pattern: ${(error as Error).message}`, pattern.start)
  }
}

/** Where the name of a function stands. */
const placeOf = (node: ASTNode): number => (node.op === 'rcall' ? node.args[1].end + 1 : node.start)

function checkField(node: ASTNode, seam: Site['seam']): void {
  const field = subjectField(node)
  if (field === undefined || Object.hasOwn(SUBJECT[seam], field)) return
  const fields = Object.keys(SUBJECT[seam]).join(', ')
  throw new ExpressionFault(`"subject" has no "${field}" at ${seam}; it has: ${fields}`, node.pos)
}

const subjectField = (node: ASTNode): string | undefined =>
  node.op === '.' && node.args[0].op === 'id' && node.args[0].args === 'subject' ? node.args[1] : undefined

function readsSiteOnly(ast: ASTNode): boolean {
  let names = 0
  let fields = 0
  let others = 0
  walk(ast, {
    node(node) {
      const field = subjectField(node)
      if (field === undefined) return
      fields++
      if (OF_ONE_CALL.includes(field)) others++
    },
    name(name) {
      if (name === 'subject') names++
      else if (name !== 'cel') others++
    },
  })
  return others === 0 && names === fields
}

/** The same expression with every list counted that a loop goes through, or that is searched inside of one. */
function withCounting(text: string, ast: ASTNode): string {
  const lists: ASTNode[] = []
  walk(ast, {
    node(node, loops) {
      if (isComprehension(node)) lists.push(node.args[1])
      else if (node.op === 'in' && loops > 0) lists.push(node.args[1])
    },
  })
  const marks = lists.flatMap(({ start, end }) => [
    { at: start, text: `${COUNTED}(` },
    { at: end, text: ')' },
  ])
  return marks
    .toSorted((a, b) => b.at - a.at || (a.text === ')' ? -1 : 1))
    .reduce((made, { at, text: mark }) => made.slice(0, at) + mark + made.slice(at), text)
}

interface CelError {
  readonly code?: unknown
  readonly summary?: unknown
  readonly range?: { readonly start: number }
  readonly node?: ASTNode
}

const rangeOf = (error: unknown) => (error as CelError | undefined)?.range

function summaryOf(error: unknown): string {
  const { code, summary } = (error ?? {}) as CelError
  if (code === 'no_such_key') return String(summary).replace(/^No such key: (.*)$/, 'there is no field "$1" here')
  const text = typeof summary === 'string' ? summary : String((error as Error | undefined)?.message)
  return text.replace(/\.$/, '')
}

/** Errors whose text holds types and names of the expression, and nothing of the values. */
const SAYS_NO_VALUE = ['no_such_overload', 'no_matching_overload', 'invalid_condition_type', 'invalid_logical_operand']

function whyNot(error: unknown): string {
  if (error instanceof OutOfSteps || (error as Error).cause instanceof OutOfSteps)
    return `its loops go through more than ${MAX_STEPS} elements`
  const { code, node } = error as CelError
  if (code === 'no_such_key' && node?.op === '.') return `there is no field "${node.args[1]}" in what it reads`
  if (SAYS_NO_VALUE.includes(code as string)) return summaryOf(error)
  return typeof code === 'string' ? code.replaceAll('_', ' ') : 'it failed'
}
