/**
 * A small graph in a form that belongs to no engine, and what its nodes do. That is a function of what they are given, so two
 * engines that give the same come to the same.
 */
export interface Plan {
  /** The first one is where a run starts; each of the others stands after one that leads to it. */
  readonly nodes: readonly PlanNode[]
  /** The inputs of the thread, one after another. */
  readonly turns: readonly Update[]
  /** Whether a resume answers every open question, or half of them. */
  readonly answers: 'all' | 'half'
}

export interface PlanNode {
  /** What it does depends on this, and not on its name. */
  readonly id: number
  /** What the engines know it by; they sort by it. */
  readonly name: string
  readonly reads: readonly FieldName[]
  readonly writes: readonly FieldName[]
  /** Turns of the loop that it lets pass first. */
  readonly waits: number
  /** Questions that it asks, one after another. */
  readonly asks: number
  /** Fails when its questions are answered, once in a superstep. */
  readonly fails: boolean
  readonly way: Way
}

/** A node's `id`; `null` is the end. */
type To = number | null

/** A node, or a task of its own with values for these fields. */
export type Target = { readonly to: To } | { readonly send: number; readonly values: readonly FieldName[] }

/** `edge`, `when` and `branch` are ways of the graph; with `choose` the node says itself where to go. */
export type Way =
  | { readonly kind: 'edge'; readonly to: To }
  | { readonly kind: 'when'; readonly test: Test; readonly then: To; readonly otherwise: To }
  | { readonly kind: 'branch'; readonly on: FieldName; readonly ways: readonly To[] }
  | {
      readonly kind: 'choose'
      readonly test: Test
      readonly then: readonly Target[]
      /** Without it, the edge is followed. */
      readonly otherwise?: readonly Target[]
      readonly edge?: To
    }

/** Whether the measure of a field is below a number. */
export interface Test {
  readonly field: FieldName
  readonly below: number
}

export const FIELDS = {
  left: 'replace',
  right: 'replace',
  log: 'append',
  trail: 'append',
  sum: 'sum',
  turns: 'sum',
} as const
export type FieldName = keyof typeof FIELDS
export const FIELD_NAMES = Object.keys(FIELDS) as readonly FieldName[]

type ValueOf<F extends FieldName> = (typeof FIELDS)[F] extends 'append' ? readonly string[] : number

/** Fields that are replaced are absent until somebody writes them. */
export type State = { readonly [F in FieldName]?: ValueOf<F> }
export type Update = State

/** What a sent task goes by; it stands in the payload beside the values themselves. */
interface Sent {
  readonly values: State
  /** Tells it from other sends. */
  readonly mark: number
}
export type Given = State & { readonly sent?: Sent }

/** What a node goes by: what it was given, and the superstep of the turn, from 0. */
export interface Moment {
  readonly given: Given
  readonly step: number
}

export interface Question {
  readonly node: number
  readonly nth: number
  readonly about: number
}

/** A target as it is handed to an engine. */
export type Chosen = { readonly to: To } | { readonly send: number; readonly payload: Given & { readonly sent: Sent } }

/** In later supersteps of a turn nothing is sent: one send may lead to three. */
const SENDS_UNTIL = 3

export const nodeOf = (plan: Plan, id: number): PlanNode => plan.nodes.find((node) => node.id === id) as PlanNode

export const nodeNamed = (plan: Plan, name: string): PlanNode =>
  plan.nodes.find((node) => node.name === name) as PlanNode

export const question = (plan: Plan, node: PlanNode, moment: Moment, answers: readonly number[]): Question => ({
  node: node.id,
  nth: answers.length,
  about: digestOf(plan, node, moment, answers),
})

export const answerTo = (asked: Question): number => digest(asked)

/** What a node writes when its questions are answered. */
export function writesOf(plan: Plan, node: PlanNode, moment: Moment, answers: readonly number[]): Update {
  const code = digestOf(plan, node, moment, answers)
  const values = { replace: code, append: [`${node.id}/${code}`], sum: 1 + (code % 3) }
  return Object.fromEntries(node.writes.map((field) => [field, values[FIELDS[field]]]))
}

/** Where a node goes by its own choice; `undefined` leaves it to the graph. */
export function choiceOf(plan: Plan, node: PlanNode, moment: Moment): readonly Chosen[] | undefined {
  if (node.way.kind !== 'choose') return undefined
  const { test, then, otherwise } = node.way
  const targets = holds(test, seen(moment)) ? then : otherwise
  return targets?.flatMap((target, i): readonly Chosen[] => {
    if (!('send' in target)) return [target]
    if (moment.step >= SENDS_UNTIL) return []
    const mark = digestOf(plan, node, moment, ['sent', i])
    const codes = { replace: mark, append: [`sent ${mark}`], sum: mark % 10 }
    const values: State = Object.fromEntries(target.values.map((field) => [field, codes[FIELDS[field]]]))
    return [{ send: target.send, payload: { ...values, sent: { values, mark } } }]
  })
}

/** Where the graph leads from a node, on this state; the end, where it leads nowhere. */
export function exitOf({ way }: PlanNode, state: State): To {
  if (way.kind === 'edge') return way.to
  if (way.kind === 'when') return holds(way.test, state) ? way.then : way.otherwise
  if (way.kind === 'branch') return way.ways[keyOf(way, state)] ?? null
  return way.edge ?? null
}

/** Which of the ways a branch takes. */
export const keyOf = ({ on, ways }: Extract<Way, { kind: 'branch' }>, state: State): number =>
  measure(on, state) % ways.length

export const holds = ({ field, below }: Test, state: State): boolean => measure(field, state) < below

/** Every node that a way may lead to. */
export function targetsOf({ way }: PlanNode): readonly number[] {
  const idOf = (target: Target) => ('send' in target ? target.send : target.to)
  return [...new Set(waysOf(way, idOf))].filter((to) => to !== null)
}

function waysOf(way: Way, idOf: (target: Target) => To): readonly To[] {
  if (way.kind === 'edge') return [way.to]
  if (way.kind === 'when') return [way.then, way.otherwise]
  if (way.kind === 'branch') return way.ways
  return [...way.then.map(idOf), ...(way.otherwise ?? []).map(idOf), way.edge ?? null]
}

/** A field as a small number: the length of a list, a total, the last digit of what is replaced. */
function measure(field: FieldName, state: State): number {
  const value = state[field] ?? 0
  if (typeof value !== 'number') return value.length
  return FIELDS[field] === 'replace' ? value % 10 : value
}

/** A sent task goes by what was sent, and by nothing else: see `sent` in the table of differences. */
const seen = ({ given }: Moment): State => given.sent?.values ?? given

function digestOf(plan: Plan, node: PlanNode, moment: Moment, more: unknown): number {
  const state = seen(moment)
  // Lists are read in their order where both engines have the same one: see `order` in the table of differences.
  const ordered = !plan.nodes.some(sends)
  const read = node.reads.map((field) => {
    const value = state[field] ?? null
    return typeof value === 'object' && !ordered ? value?.toSorted() : value
  })
  return digest([node.id, moment.step, moment.given.sent?.mark ?? null, read, more])
}

const sends = ({ way }: PlanNode): boolean =>
  way.kind === 'choose' && [...way.then, ...(way.otherwise ?? [])].some((target) => 'send' in target)

/** A number below 1,000 that tells values apart, mostly. */
function digest(value: unknown): number {
  let hash = 2_166_136_261
  for (const char of JSON.stringify(value)) hash = Math.imul(hash ^ char.charCodeAt(0), 16_777_619)
  return (hash >>> 0) % 1_000
}
