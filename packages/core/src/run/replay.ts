import { SluiceError } from '../errors/error.ts'
import type { Runnable } from '../graph/graph.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { PERSON } from '../seams/asks.ts'
import type { Ask, ThreadRecord } from '../store/records.ts'
import { type Platform, platform } from './platform.ts'
import { createRuntime, type RunOutcome, type RuntimeOptions, type StreamOptions } from './runtime.ts'
import { Recording } from './threads/recording.ts'

/** How a recorded thread went when it was played again. */
export interface Replay<State> {
  /** How each turn ended that was played, in order. */
  readonly turns: readonly RunOutcome<State>[]
  /** Questions that nobody had answered in the record; nothing after them was played. */
  readonly waits?: readonly string[]
}

/**
 * Plays a thread again from its records: its inputs, its people's answers, what its models and tools came to. Nothing is asked of
 * a model, a tool or a person; policies are consulted anew, those of `options`, and may be others than then. So it shows what
 * they would have decided, with {@link RuntimeOptions.decisions}. Where that leads elsewhere, a call that was made is handed what
 * was recorded of one like it, and a call of which nothing was recorded fails with `REPLAY_UNRECORDED`.
 *
 * What a tool did by running graphs is not played: the tool is handed back as a whole.
 *
 * @param records as {@link Runtime.history} says them, from the thread's first one.
 * @throws SluiceError `REPLAY_TRIMMED` for records that do not begin with the thread.
 */
export async function replayThread<State, Update>(
  graph: Runnable<State, Update>,
  records: readonly ThreadRecord[],
  options: Omit<RuntimeOptions, 'store' | 'recording'> = {},
): Promise<Replay<State>> {
  let ids = 0
  // Two plays of one thread have the same ids, so that their decisions can be compared.
  const counting: Platform = { ...(options.platform ?? platform), uuid: () => `replay-${++ids}` }
  const runtime = createRuntime({ ...options, platform: counting, recording: new Recording(records) })
  // Stands for whoever it was: what policies keep of them begins anew.
  const startedBy = 'replay'
  const play = async (begin: StreamOptions, input?: Update) => {
    const stream = runtime.stream(graph, input, { thread: 'replay', mode: 'updates', startedBy, ...begin })
    for await (const _ of stream);
    return stream.outcome
  }
  const turns: RunOutcome<State>[] = []
  for (const step of stepsOf(records)) {
    if ('values' in step) {
      await runtime.updateState(graph, 'replay', step.values as Update)
      continue
    }
    let { continued } = step
    let outcome = await play({}, step.input as Update)
    for (;;) {
      const answers = outcome.status === 'paused' ? answersTo(outcome.asks, step.answers) : NO_ANSWERS
      if (answers.size > 0) outcome = await play({ resume: answers })
      else if (['failed', 'cancelled'].includes(outcome.status) && continued-- > 0)
        outcome = await play({ continue: true })
      else break
    }
    turns.push(outcome)
    if (outcome.status === 'paused') break
  }
  // Decisions are written by then, and policies in shadow have answered.
  await runtime.drain()
  const waits = turns.at(-1)?.asks.map(({ key }) => key) ?? []
  return waits.length === 0 ? { turns } : { turns, waits }
}

const NO_ANSWERS: ReadonlyMap<string, Json> = new Map()

/** A turn as it was played: what people answered by key, and how often it was continued. */
interface Turn {
  readonly input: JsonObject
  readonly answers: Map<string, Json[]>
  continued: number
}

function stepsOf(records: readonly ThreadRecord[]): readonly (Turn | { readonly values: JsonObject })[] {
  const steps: (Turn | { readonly values: JsonObject })[] = []
  let turn: Turn | undefined
  for (const record of records) {
    if (record.type === 'start') {
      turn = { input: record.input, answers: new Map(), continued: 0 }
      steps.push(turn)
    } else if (record.type === 'update') steps.push({ values: record.values })
    else if (turn === undefined) throw trimmed()
    else if (record.type === 'continue') turn.continued++
    else if (record.type === 'answer' && record.by === PERSON && record.value !== undefined) {
      turn.answers.set(record.key, [...(turn.answers.get(record.key) ?? []), record.value])
    }
  }
  return steps
}

/** The next answer that was recorded to each question. */
const answersTo = (asks: readonly Ask[], recorded: Turn['answers']): ReadonlyMap<string, Json> =>
  new Map(
    asks.flatMap(({ key }) => {
      const value = recorded.get(key)?.shift()
      return value === undefined ? [] : [[key, value] as const]
    }),
  )

const trimmed = () =>
  new SluiceError(
    'REPLAY_TRIMMED',
    'the records do not begin with the thread: its past was dropped when it was compacted, and cannot be played again.',
  )
