import { type DifferenceId, LANGGRAPH, namesOf, nextOf, type Rules, SLUICE, updatesIn } from './differences.ts'
import type { Plan, State } from './plan.ts'
import { compareTexts, type Done, fold, type Happening, type Pause, type Superstep } from './play.ts'

/**
 * Compares what happened to a thread on the two engines, one thing after another, to the end or to where a known difference
 * leads them different ways; that one is handed back. Each engine must keep its own rules, and `met` collects those that made
 * a difference.
 *
 * @throws Error that says what differs and should not.
 */
export function comparePlays(
  plan: Plan,
  ours: readonly Happening[],
  theirs: readonly Happening[],
  met: Set<DifferenceId>,
): DifferenceId | undefined {
  for (let i = 0; i < Math.max(ours.length, theirs.length); i++) {
    const [a, b] = [ours[i], theirs[i]]
    if (a?.kind === 'superstep') keepsRules(SLUICE, plan, a, ours[i + 1], `happening ${i} on Sluice`)
    if (b?.kind === 'superstep') keepsRules(LANGGRAPH, plan, b, theirs[i + 1], `happening ${i} on LangGraph`)
    const parted = partedAt(plan, a, b)
    if (parted !== undefined) met.add(parted)
    if (parted === 'one-node' || parted === 'pause') return parted
    same(a?.kind, b?.kind, `the kind of happening ${i}`)
    if (a?.kind === 'superstep' && b?.kind === 'superstep') sameSuperstep(a, b, met, i)
    else if (a?.kind === 'pause' && b?.kind === 'pause') samePause(a, b, met, i)
    else if (a?.kind === 'failure' && b?.kind === 'failure') {
      same(a.why, b.why, `why happening ${i} failed`)
      if (a.why === 'conflict') same(true, SLUICE.clash(b.tasks), `whether the updates of happening ${i} clash`)
    } else if (a?.kind === 'end' && b?.kind === 'end') same(shown(a.state, met), shown(b.state, met), 'the final state')
    if (parted !== undefined) return parted
  }
  return undefined
}

/** The known difference that leads the two different ways here or from here. */
function partedAt(plan: Plan, a: Happening | undefined, b: Happening | undefined): DifferenceId | undefined {
  if (a?.kind === 'superstep' && b?.kind === 'superstep')
    return text(nextOf(SLUICE, plan, a)) === text(nextOf(LANGGRAPH, plan, b)) ? undefined : 'routes'
  if (b?.kind !== 'failure' || b.why !== 'conflict' || !LANGGRAPH.clash(b.tasks)) return undefined
  if (a?.kind === 'pause') return 'pause'
  if (a?.kind !== 'superstep') return undefined
  same(tasksOf(a), tasksOf(b), 'what tasks were sent and wrote that clash')
  return 'one-node'
}

function sameSuperstep(a: Superstep, b: Superstep, met: Set<DifferenceId>, i: number): void {
  same(tasksOf(a), tasksOf(b), `what the tasks of happening ${i} were sent and wrote`)
  if (a.tasks.some(({ received }) => received.sent !== undefined)) met.add('sent')
  if (text(updatesIn(SLUICE, a.tasks)) !== text(updatesIn(LANGGRAPH, b.tasks))) met.add('order')
  same(shown(a.after, met), shown(b.after, met), `the state after happening ${i}`)
}

function samePause(a: Pause, b: Pause, met: Set<DifferenceId>, i: number): void {
  same(a.questions, b.questions, `what is asked in happening ${i}`)
  for (const [rules, { before, shown, through }] of [[SLUICE, a] as const, [LANGGRAPH, b] as const]) {
    same(rules.clash(through), false, `whether updates clash in happening ${i}`)
    same(shown, rules.shows(before, through), `the state that happening ${i} shows`)
  }
  if (text(shown(a.shown, met)) !== text(shown(b.shown, met))) met.add('pause')
}

function keepsRules(rules: Rules, plan: Plan, superstep: Superstep, then: Happening | undefined, where: string): void {
  const { before, tasks, after } = superstep
  for (const { received } of tasks) {
    const { sent } = received
    const given = sent === undefined ? before : rules.given(before, { ...sent.values, sent })
    same(received, given, `what a node was given in ${where}`)
  }
  same(rules.clash(tasks), false, `whether updates clash in ${where}`)
  same(after, fold(before, updatesIn(rules, tasks)), `the state after ${where}`)
  if (then?.kind === 'superstep') same(namesOf(then), nextOf(rules, plan, superstep), `who comes after ${where}`)
  if (then?.kind === 'end') same([], nextOf(rules, plan, superstep), `who comes after ${where}`)
}

const tasksOf = ({ tasks }: { readonly tasks: readonly Done[] }): readonly string[] =>
  tasks.map(({ node, received: { sent }, update }) => text({ node, sent, update })).toSorted(compareTexts)

/** A state without the order of its lists, once that has differed. */
const shown = (state: State, met: Set<DifferenceId>): State =>
  met.has('order') ? { ...state, log: state.log?.toSorted() ?? [], trail: state.trail?.toSorted() ?? [] } : state

function same(a: unknown, b: unknown, what: string): void {
  if (text(a) !== text(b)) throw new Error(`not the same: ${what}\n  ${text(a)}\n  ${text(b)}`)
}

/** JSON with keys in order, so that equal values have equal texts. */
const text = (value: unknown): string =>
  JSON.stringify(value ?? null, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => compareTexts(a, b)))
      : item,
  )
