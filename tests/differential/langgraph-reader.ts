import { GraphRecursionError, type Interrupt, InvalidUpdateError } from '@langchain/langgraph'
import type { DifferenceId } from './differences.ts'
import { FIELDS, type Given, nodeNamed, type Plan, type Question, type State, type Update } from './plan.ts'
import { type Done, type Failure, LIMIT, type Open, PLANNED, Stand } from './play.ts'

export type RunEnd = 'end' | 'pause' | Failure

/** A chunk of the mode `debug`: a task begins or is through, or its superstep is. */
interface Told {
  readonly type: 'task' | 'task_result' | 'checkpoint'
  readonly step: number
  readonly payload: { readonly id: string; readonly name: string }
}

/** A task of the superstep under way; one that is through has an update. */
interface Under {
  readonly name: string
  readonly update?: Update
}

/** What a checkpointer keeps of tasks that do not end a superstep. */
const NO_OUTPUT = ['__error__', '__interrupt__', '__resume__']

/** Makes happenings of what LangGraph's streams tell. `met` collects the differences that are taken out of it. */
export class Reader {
  readonly stand = new Stand()
  /** What each task was given, by its id. */
  readonly received = new Map<string, Given>()
  /** The questions that the last run ended with. */
  open: Open[] = []
  /** The number of the turn's first superstep. */
  first = 1
  readonly #plan: Plan
  readonly #met: Set<DifferenceId>
  /** In the order they were scheduled, by their ids; kept over a pause and a failure. */
  #tasks = new Map<string, Under>()
  /** The state, and a task's update, as they were last told. */
  #values: State | undefined
  #update: Update | undefined
  #step = 0
  #begun = 0

  constructor(plan: Plan, met: Set<DifferenceId>) {
    this.#plan = plan
    this.#met = met
  }

  turn(input: Update): void {
    const count = (which: string) => this.stand.happenings.filter(({ kind }) => kind === which).length
    // `start`: the input and START are supersteps there.
    this.first = 1 + count('superstep') + 2 * count('end')
    this.#met.add('start')
    this.stand.turn(input)
  }

  /** The state as it was last told. */
  get shown(): State {
    return this.#values ?? this.stand.state
  }

  /** The tasks of the superstep under way that are through. */
  get through(): readonly Done[] {
    return [...this.#tasks].flatMap(([id, { name, update }]) => {
      const received = this.received.get(id) as Given
      return update === undefined ? [] : [{ node: nodeNamed(this.#plan, name).id, name, received, update }]
    })
  }

  /** Reads a run to its end. */
  async read(chunks: AsyncIterable<readonly [mode: string, chunk: object]>): Promise<RunEnd> {
    this.open = []
    this.#step = this.#begun = 0
    this.#values = undefined
    const end = await this.#readAll(chunks)
    // `told`: updates are told of tasks whose superstep is not through.
    if (end !== 'end' && this.through.length > 0) this.#met.add('told')
    if (end === 'end' || this.#begun <= LIMIT) return end
    // `limit`: one superstep more is run before that is noticed, and it may pause or fail.
    this.#met.add('limit')
    return 'limit'
  }

  /** Whose updates a checkpointer keeps: a stream that fails drops what was not read. */
  recover(writes: readonly (readonly [task: string, channel: string, value: unknown])[]): void {
    for (const [id, { name }] of this.#tasks) {
      const own = writes.filter(([task, channel]) => task === id && !NO_OUTPUT.includes(channel))
      const update = Object.fromEntries(own.flatMap(([, field, value]) => (field in FIELDS ? [[field, value]] : [])))
      this.#tasks.set(id, own.length === 0 ? { name } : { name, update })
    }
  }

  async #readAll(chunks: AsyncIterable<readonly [mode: string, chunk: object]>): Promise<RunEnd> {
    try {
      for await (const [mode, chunk] of chunks) {
        if (mode === 'debug') this.#told(chunk as Told)
        else if (mode === 'updates') this.#updated(chunk)
        else if (!('__interrupt__' in chunk)) this.#values = chunk
      }
    } catch (error) {
      return failureOf(error)
    }
    return this.open.length === 0 ? 'end' : 'pause'
  }

  #updated(chunk: object): void {
    const { __metadata__: again, __interrupt__: asked, ...updates } = chunk as Readonly<Record<string, unknown>>
    // `told`: what was told before a pause is told once more after it.
    if (again !== undefined) this.#met.add('told')
    else if (asked === undefined) this.#update = (Object.values(updates)[0] ?? {}) as Update
    else {
      const interrupts = asked as readonly Interrupt<Question>[]
      this.open.push(...interrupts.map(({ id, value }) => ({ key: id as string, asked: value as Question })))
    }
  }

  /** The update of a task is told just before its result, and the state just before its superstep is said to be through. */
  #told({ type, step, payload: { id, name } }: Told): void {
    if (type === 'task') {
      if (step !== this.#step) this.#begun++
      this.#step = step
      this.#values = undefined
      if (!this.#tasks.has(id)) this.#tasks.set(id, { name })
    } else if (type === 'task_result') {
      if (this.#update !== undefined) this.#tasks.set(id, { name, update: this.#update })
      this.#update = undefined
    } else if (this.#begun > 0 && step === this.#step) {
      // `silence`: a state that nobody has written to is not told.
      if (this.#values === undefined) this.#met.add('silence')
      this.stand.superstep(this.through, this.shown)
      this.#tasks = new Map()
    }
  }
}

function failureOf(error: unknown): Failure {
  if (error instanceof InvalidUpdateError) return 'conflict'
  if (error instanceof GraphRecursionError) return 'limit'
  if (error instanceof Error && error.message === PLANNED) return 'node'
  throw error
}
