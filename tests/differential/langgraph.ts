import {
  Annotation,
  Command,
  END,
  interrupt,
  type LangGraphRunnableConfig,
  MemorySaver,
  Send,
  START,
  StateGraph,
} from '@langchain/langgraph'
import type { DifferenceId } from './differences.ts'
import { Reader, type RunEnd } from './langgraph-reader.ts'
import {
  answerTo,
  type Chosen,
  choiceOf,
  exitOf,
  type Given,
  nodeOf,
  type Plan,
  type PlanNode,
  question,
  type State,
  targetsOf,
  writesOf,
} from './plan.ts'
import { answersNow, type Happening, LIMIT, type Open, pass } from './play.ts'

// Where a developer has tracing switched on, every run would be told to a server.
for (const name of ['LANGSMITH_TRACING', 'LANGSMITH_TRACING_V2', 'LANGCHAIN_TRACING', 'LANGCHAIN_TRACING_V2']) {
  delete process.env[name]
}

const list = () => Annotation<readonly string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] })
const total = () => Annotation<number>({ reducer: (a, b) => a + b, default: () => 0 })

const Fields = Annotation.Root({
  left: Annotation<number>,
  right: Annotation<number>,
  log: list(),
  trail: list(),
  sum: total(),
  turns: total(),
  sent: Annotation<Given['sent']>,
})

/** `limit`: what allows as many supersteps as `LIMIT` does here, after an input, and where a thread is gone on with. */
const RECURSION_LIMIT = { input: LIMIT + 1, again: LIMIT - 1 }

/** Plays a plan on a thread of LangGraph. `met` collects the differences that are taken out of what it tells. */
export async function playOnLangGraph(plan: Plan, met: Set<DifferenceId>): Promise<readonly Happening[]> {
  const reader = new Reader(plan, met)
  const { stand } = reader
  const thread = new Thread(plan, reader)
  for (const input of plan.turns) {
    reader.turn(input)
    let end = await thread.go(input, RECURSION_LIMIT.input)
    while (end !== 'end') {
      if (end === 'pause') {
        const { all, now } = answersNow(plan, reader.open)
        stand.pause(all, reader.shown, reader.through)
        // `entered`: nodes whose questions stay open are run all the same, and ask again.
        if (now.length < all.length) met.add('entered')
        if (stand.enough) return stand.happenings
        end = await thread.answer(now)
      } else {
        stand.failure(end, reader.through)
        if (end !== 'node' || stand.enough) return stand.happenings
        end = await thread.go(null, RECURSION_LIMIT.again)
        // `answers`: what was answered in the run that failed is asked again of nodes that were not through.
        while (end === 'pause' && thread.lost().length > 0) {
          met.add('answers')
          end = await thread.answer(thread.lost())
        }
      }
    }
    stand.end(reader.shown)
  }
  if (plan.nodes.some(({ way }) => way.kind === 'choose' && way.edge !== undefined)) met.add('edges')
  return stand.happenings
}

class Thread {
  readonly #reader: Reader
  readonly #saver = new MemorySaver()
  readonly #app: App
  readonly #answered = new Set<string>()

  constructor(plan: Plan, reader: Reader) {
    this.#reader = reader
    this.#app = appOf(plan, reader, this.#saver)
  }

  async go(input: unknown, recursionLimit: number): Promise<RunEnd> {
    const configurable = { thread_id: 't' }
    const options = { configurable, recursionLimit, streamMode: ['updates', 'values', 'debug'] }
    const end = await this.#reader.read(await this.#app.stream(input, options))
    if (end === 'conflict' || end === 'node') {
      const saved = await this.#saver.getTuple({ configurable })
      this.#reader.recover(saved?.pendingWrites ?? [])
    }
    return end
  }

  answer(open: readonly Open[]): Promise<RunEnd> {
    for (const { key } of open) this.#answered.add(key)
    const resume = Object.fromEntries(open.map(({ key, asked }) => [key, answerTo(asked)]))
    return this.go(new Command({ resume }), RECURSION_LIMIT.again)
  }

  /** Open questions that have been answered before. */
  lost(): readonly Open[] {
    return this.#reader.open.filter(({ key }) => this.#answered.has(key))
  }
}

/** The builder without the names of nodes in its type. */
interface Builder {
  addNode(name: string, run: unknown, options: { ends?: string[] }): void
  addEdge(from: string, to: string): void
  addConditionalEdges(from: string, exit: (state: State) => string, ways: string[]): void
  compile(options: { checkpointer: MemorySaver }): App
}

interface App {
  stream(input: unknown, options: object): Promise<AsyncIterable<readonly [mode: string, chunk: object]>>
}

function appOf(plan: Plan, reader: Reader, checkpointer: MemorySaver): App {
  const at = (to: number | null) => (to === null ? END : nodeOf(plan, to).name)
  const builder = new StateGraph(Fields) as unknown as Builder
  for (const planned of plan.nodes) {
    const { name, way } = planned
    const ways = [...targetsOf(planned).map(at), END]
    builder.addNode(name, runOf(plan, planned, reader, at), way.kind === 'choose' ? { ends: ways } : {})
    if (way.kind === 'edge') builder.addEdge(name, at(way.to))
    else if (way.kind !== 'choose') builder.addConditionalEdges(name, (state) => at(exitOf(planned, state)), ways)
  }
  builder.addEdge(START, (plan.nodes[0] as PlanNode).name)
  return builder.compile({ checkpointer })
}

function runOf(plan: Plan, planned: PlanNode, reader: Reader, at: (to: number | null) => string) {
  const targetOf = (target: Chosen) =>
    'send' in target ? new Send(at(target.send), { ...target.payload }) : at(target.to)
  return async (given: Given, config: LangGraphRunnableConfig) => {
    reader.received.set(config.executionInfo?.taskId as string, given)
    // A stream that fails drops what was not read yet. With this turn, that is nothing of the supersteps before.
    await pass(planned.waits + 1)
    const moment = { given, step: Number(config.metadata?.langgraph_step) - reader.first }
    const answers: number[] = []
    while (answers.length < planned.asks) answers.push(interrupt(question(plan, planned, moment, answers)))
    if (planned.fails) reader.stand.failAt(moment.step)
    const update = writesOf(plan, planned, moment, answers)
    if (planned.way.kind !== 'choose') return update
    // `edges`: there they are followed beside what a node chooses, so a node that chooses is built without one.
    const chosen = choiceOf(plan, planned, moment) ?? [{ to: exitOf(planned, given) }]
    return new Command({ update, goto: chosen.map(targetOf) })
  }
}
