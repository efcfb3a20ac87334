import type { Json } from '../json/json.ts'
import { own } from '../json/own.ts'
import { Call, type SeamSpec } from '../seams/call.ts'
import type { Round } from '../seams/verdict.ts'
import type { Task } from './task.ts'

interface RoundEnd {
  readonly toolNames: readonly string[]
}

class RoundCall extends Call<Json> {
  readonly work: () => Promise<RoundEnd>

  constructor(task: Task, round: Round, work: () => Promise<RoundEnd>) {
    const given = own(round)
    super(task.scope, task.subject, given, { nestedIn: task.scope.nestedIn, round: round.round, maker: task })
    this.work = work
  }
}

/** `after` is consulted about rounds that ran tools only. */
export const agentRoundSpec: SeamSpec<Json, { readonly round: number; readonly end: RoundEnd }> = {
  seam: 'agentRound',
  perform: async (call) => ({ round: (call.input as unknown as Round).round, end: await (call as RoundCall).work() }),
  judged: (outcome) => outcome.ok && outcome.value.end.toolNames.length > 0,
  show: ({ round, end }) => own({ round, toolCalls: end.toolNames }),
}

/** One round of an agent through its gate. */
export async function runRound<End extends RoundEnd>(task: Task, round: Round, work: () => Promise<End>): Promise<End> {
  const { end } = await task.scope.runtime.gates.agentRound(new RoundCall(task, round, work))
  return end as End
}
