import { choiceOf, exitOf, FIELDS, type FieldName, type Given, nodeOf, type Plan, type State } from './plan.ts'
import { compareTexts, type Done, fold, type Superstep } from './play.ts'

/** What is known to differ. docs/differences.md says of each what is there, what is here, and why. */
export const DIFFERENCES = [
  // Rules of the two that come to something else; they are below, and each must keep its own.
  'order',
  'sent',
  'one-node',
  'routes',
  'pause',
  // Taken out of what LangGraph is asked and tells; each stands where that is done in langgraph.ts.
  'edges',
  'start',
  'limit',
  'told',
  'silence',
  'entered',
  'answers',
] as const
export type DifferenceId = (typeof DIFFERENCES)[number]

export interface Rules {
  /** `order`: the tasks of a superstep in the order in which their updates merge. */
  order(tasks: readonly Done[]): readonly Done[]
  /** `sent`: what a node is given, where something was sent to it. */
  given(before: State, sent: Given): Given
  /** `one-node`: whether updates clash that replace one field. */
  clash(tasks: readonly Done[]): boolean
  /** `routes`: the state on which the graph decides where a task leads. */
  decides(superstep: Pick<Superstep, 'before' | 'after'>, task: Done): State
  /** `pause`: the state that is shown while questions are open and these tasks of the superstep are through. */
  shows(before: State, through: readonly Done[]): State
}

const byName = (tasks: readonly Done[]) => tasks.toSorted((a, b) => compareTexts(a.name, b.name))
const sentTo = ({ received }: Done) => received.sent !== undefined

/** Whether two writers replace one field. */
function clashOf(tasks: readonly Done[], writerOf: (task: Done) => unknown): boolean {
  const writers = new Map<string, unknown>()
  return tasks.some((task) =>
    Object.keys(task.update)
      .filter((field) => FIELDS[field as FieldName] === 'replace')
      .some((field) => {
        const before = writers.get(field)
        writers.set(field, writerOf(task))
        return before !== undefined && before !== writerOf(task)
      }),
  )
}

export const SLUICE: Rules = {
  order: byName,
  given: (before, sent) => ({ ...before, ...sent }),
  clash: (tasks) => clashOf(tasks, ({ name }) => name),
  decides: ({ after }) => after,
  shows: (before) => before,
}

export const LANGGRAPH: Rules = {
  order: (tasks) => [...byName(tasks.filter((task) => !sentTo(task))), ...tasks.filter(sentTo)],
  given: (_before, sent) => sent,
  clash: (tasks) => clashOf(tasks, (task) => task),
  decides: ({ before }, { update }) => fold(before, [update]),
  shows: (before, through) => fold(before, updatesIn(LANGGRAPH, through)),
}

/** The updates of a superstep in the order in which they merge. */
export const updatesIn = (rules: Rules, tasks: readonly Done[]) => rules.order(tasks).map(({ update }) => update)

/** Who is next by these rules: a node by its id, a sent task by the mark of its send too; in an order of its own. */
export function nextOf(rules: Rules, plan: Plan, superstep: Superstep): readonly string[] {
  const plain = new Set<string>()
  const sent: string[] = []
  for (const task of superstep.tasks) {
    const node = nodeOf(plan, task.node)
    const chosen = choiceOf(plan, node, { given: task.received, step: superstep.step })
    for (const target of chosen ?? [{ to: exitOf(node, rules.decides(superstep, task)) }]) {
      if ('send' in target) sent.push(`${target.send} ${target.payload.sent.mark}`)
      else if (target.to !== null) plain.add(`${target.to}`)
    }
  }
  return [...plain, ...sent].toSorted()
}

export const namesOf = ({ tasks }: Superstep): readonly string[] =>
  tasks.map(({ node, received: { sent } }) => (sent === undefined ? `${node}` : `${node} ${sent.mark}`)).toSorted()
