import type { Json } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import { Call, type SeamSpec } from '../../seams/call.ts'
import { RefusedError } from '../../seams/failure.ts'
import type { Entry } from '../../seams/journal.ts'
import type { Round, RoundResult } from '../../seams/verdict.ts'
import type { Task } from '../task.ts'

interface RoundEnd {
  readonly toolNames: readonly string[]
}

class RoundCall extends Call<Json> {
  readonly work: () => Promise<RoundEnd>
  readonly #within: readonly string[] | undefined

  constructor(task: Task, given: Json, round: number, entry: Entry | undefined, work: () => Promise<RoundEnd>) {
    super(task.scope, task.subject, given, { nestedIn: task.scope.nestedIn, round, entry, maker: task })
    this.work = work
    this.#within = task.log && task.place
  }

  override get place(): readonly string[] | undefined {
    return this.#within && [...this.#within, this.entry?.key ?? '']
  }
}

/** `after` is consulted about rounds that ran tools only. */
export const agentRoundSpec: SeamSpec<Json, { readonly round: number; readonly end: RoundEnd }> = {
  seam: 'agentRound',
  perform: async (call) => ({ round: (call.input as unknown as Round).round, end: await (call as RoundCall).work() }),
  judged: (outcome) => outcome.ok && outcome.value.end.toolNames.length > 0,
  show: ({ round, end }) => own({ round, toolCalls: end.toolNames }),
  showOwn: ({ round, end }): RoundResult => ({ round, toolCalls: end.toolNames }),
}

/** One round of an agent through its gate. */
export async function runRound<End extends RoundEnd>(task: Task, round: Round, work: () => Promise<End>): Promise<End> {
  const { gates } = task.scope
  const given = own(round)
  const entry = gates.judgesRounds(task.subject) ? task.log?.journal.enterRound(String(round.round), given) : undefined
  if (entry?.settled !== undefined) return replayed(entry.settled, work)
  const { end } = await gates.agentRound(new RoundCall(task, given, round.round, entry, work))
  return end as End
}

/** A round that was judged in an earlier run: its calls hand back what they came to, and nobody is consulted about it again. */
async function replayed<End>(settled: NonNullable<Entry['settled']>, work: () => Promise<End>): Promise<End> {
  if (settled.ok) return work()
  // One that was refused made no calls. In one that failed later they were made, and belong to it.
  if (!(settled.error instanceof RefusedError)) await work().catch(() => undefined)
  throw settled.error
}
