import {
  type AnyNode,
  append,
  command,
  createRuntime,
  END,
  field,
  type Graph,
  graph,
  type JsonObject,
  MemoryStore,
  type Middleware,
  type NodeContext,
  node,
  type RunEvent,
  type RuntimeOptions,
  reduced,
  Send,
  START,
  send,
  showError,
  state,
  type Target,
} from '@sluice/core'
import { z } from 'zod'
import {
  answerTo,
  type Chosen,
  choiceOf,
  type Given,
  holds,
  keyOf,
  nodeOf,
  type Plan,
  type PlanNode,
  type Question,
  question,
  type State,
  targetsOf,
  type Update,
  writesOf,
} from './plan.ts'
import { answersNow, type Done, type Failure, type Happening, LIMIT, PLANNED, pass, Stand } from './play.ts'

const add = (current: number | undefined, more: number) => (current ?? 0) + more

const Fields = state({
  left: field<number>(),
  right: field<number>(),
  log: append(z.string()),
  trail: append(z.string()),
  sum: reduced(z.number().default(0), add),
  turns: reduced(z.number().default(0), add),
  sent: field<Given['sent']>(),
})

/** How a copy of us is broken, to see that it shows; or what it is given besides, to see that it does not. */
export interface Broken {
  readonly middleware?: readonly Middleware[]
  readonly answer?: (asked: Question) => number
  readonly limit?: number
  /** The name that a node has in the engine. */
  readonly alias?: (name: string) => string
  /** A node that is chosen twice runs twice. */
  readonly twice?: boolean
}

/** How a thread is begun or gone on with. */
type Call =
  | { readonly input: Update }
  | { readonly resume: Readonly<Record<string, number>> }
  | { readonly continue: true }

type Ways<Key extends string> = Record<Key, Target>

/** What a run ended with. */
type End = Pick<Extract<RunEvent, { type: 'run_end' }>, 'status' | 'asks' | 'error'>

/** Plays a plan on a thread of Sluice, and reads its streams. */
export function playOnSluice(plan: Plan, broken: Broken = {}): Promise<readonly Happening[]> {
  return play(plan, new Streamed(plan, broken), broken)
}

/** The same with `run`, `resume` and `continue`: pauses, failures and ends without the supersteps, so many at most. */
export function collectOnSluice(plan: Plan, most: number): Promise<readonly Happening[]> {
  return play(plan, new Collected(plan, {}, new Stand(most)), {})
}

async function play(plan: Plan, player: Player, { answer = answerTo }: Broken): Promise<readonly Happening[]> {
  const { stand } = player
  for (const input of plan.turns) {
    stand.turn(input)
    let end = await player.go({ input })
    while (end.status !== 'completed') {
      if (end.status === 'paused') {
        const open = (end.asks ?? []).map(({ key, payload }) => ({ key, asked: payload as unknown as Question }))
        const { all, now } = answersNow(plan, open)
        stand.pause(all, await player.state(), [])
        if (stand.enough) return stand.happenings
        end = await player.go({ resume: Object.fromEntries(now.map(({ key, asked }) => [key, answer(asked)])) })
      } else {
        const why = failureOf(end)
        stand.failure(why, [])
        if (why !== 'node' || stand.enough) return stand.happenings
        end = await player.go({ continue: true })
      }
    }
    stand.end(await player.state())
  }
  return stand.happenings
}

function failureOf({ error }: End): Failure {
  if (error?.code === 'UPDATE_CONFLICT') return 'conflict'
  if (error?.code === 'MAX_ITERATIONS') return 'limit'
  if (error?.message === PLANNED) return 'node'
  throw new Error(`Sluice failed in a way that is not planned: ${error?.code} ${error?.message}`)
}

/** A plan as a graph of ours, on a thread. */
abstract class Player {
  readonly stand: Stand
  /** What each task was given: a run is ahead of who reads its stream. */
  protected readonly received = new Map<string, Given>()
  protected readonly plan: Plan
  protected readonly options: RuntimeOptions
  protected readonly graph: Graph<never, never>
  readonly #broken: Broken
  readonly #nodes = new Map<number, AnyNode>()
  #before = 0

  constructor(plan: Plan, broken: Broken, stand = new Stand()) {
    this.plan = plan
    this.stand = stand
    this.#broken = broken
    this.options = { store: new MemoryStore(), limits: { maxIterations: broken.limit ?? LIMIT } }
    this.graph = this.#build() as unknown as Graph<never, never>
  }

  go(call: Call): Promise<End> {
    this.#before = this.stand.through
    return this.run(call)
  }

  protected abstract run(call: Call): Promise<End>

  async state(): Promise<State> {
    return (await createRuntime(this.options).stateAt(this.graph, 't')).state as unknown as State
  }

  protected alias(name: string): string {
    return this.#broken.alias?.(name) ?? name
  }

  #build() {
    const { nodes } = this.plan
    // From the last to the first: a node is in the graph when another lists it itself, and not its name.
    for (const planned of nodes.toReversed()) {
      const goto = [
        ...targetsOf(planned).map((id) => this.#nodes.get(id) ?? this.alias(nodeOf(this.plan, id).name)),
        END,
      ]
      const options = planned.way.kind === 'choose' ? { goto: goto as Target[] } : {}
      this.#nodes.set(planned.id, node(this.alias(planned.name), Fields, this.#runOf(planned) as never, options))
    }
    const { middleware } = this.#broken
    const builder = graph('plan', Fields, { middleware }).edge(START, this.#at(nodes[0]?.id ?? null))
    for (const { id, way } of nodes) {
      const from = this.#at(id) as never
      if (way.kind === 'edge') builder.edge(from, this.#at(way.to))
      else if (way.kind === 'when') {
        const ways: Ways<'then' | 'otherwise'> = { then: this.#at(way.then), otherwise: this.#at(way.otherwise) }
        builder.when(from, (merged: State) => holds(way.test, merged), ways)
      } else if (way.kind === 'branch') {
        const ways: Ways<string> = Object.fromEntries(way.ways.map((to, key) => [key, this.#at(to)]))
        builder.branch(from, (merged: State) => keyOf(way, merged), ways)
      } else if (way.edge !== undefined) builder.edge(from, this.#at(way.edge))
    }
    return builder.check()
  }

  #at(to: number | null): Target {
    return to === null ? END : (this.#nodes.get(to) as AnyNode)
  }

  /** A node that has nothing to wait for answers at once, and the others by a promise. */
  #runOf(planned: PlanNode) {
    const { plan, stand } = this
    return (given: Given, ctx: NodeContext) => {
      const moment = { given, step: this.#before + ctx.step }
      this.received.set(`${moment.step} ${ctx.taskId}`, given)
      const finish = (answers: readonly number[]) => {
        if (planned.fails) stand.failAt(moment.step)
        const update = writesOf(plan, planned, moment, answers)
        const goto = choiceOf(plan, planned, moment)?.map((target) => this.#goto(target))
        if (Object.keys(update).length > 0) return goto === undefined ? update : command({ update, goto })
        const [only, ...others] = goto ?? []
        return others.length === 0 && (only instanceof Send || only === END) ? only : goto && command({ goto })
      }
      if (planned.waits === 0 && planned.asks === 0) return finish([])
      return pass(planned.waits).then(async () => {
        const answers: number[] = []
        while (answers.length < planned.asks) {
          const asked: unknown = question(plan, planned, moment, answers)
          answers.push((await ctx.ask(`q${answers.length}`, asked as JsonObject)) as number)
        }
        return finish(answers)
      })
    }
  }

  #goto(target: Chosen): Target | Send {
    if ('send' in target) return send(this.#at(target.send) as AnyNode, { ...target.payload })
    const at = this.#at(target.to)
    return this.#broken.twice && at !== END ? send(at) : at
  }
}

class Streamed extends Player {
  readonly #runtime = createRuntime(this.options)

  protected async run(call: Call): Promise<End> {
    const { plan, stand, received } = this
    const tasks: Done[] = []
    const { input, ...how } = 'input' in call ? call : { input: undefined, ...call }
    const options = { ...how, thread: 't', mode: ['updates', 'values'] } as const
    for await (const event of this.#runtime.stream(this.graph, input as never, options)) {
      if (event.type === 'run_end') return event
      if (event.type === 'values') stand.superstep(tasks.splice(0), event.state as State)
      if (event.type !== 'update') continue
      const { id, name } = plan.nodes.find((other) => this.alias(other.name) === event.nodeName) as PlanNode
      const given = received.get(`${stand.through} ${event.taskId}`) as Given
      tasks.push({ node: id, name, received: given, update: (event.update ?? {}) as Update })
    }
    throw new Error('the stream has no last event')
  }
}

/** Each call on a runtime that knows nothing of those before but what is in the store. */
class Collected extends Player {
  protected async run(call: Call): Promise<End> {
    const { graph, stand } = this
    const runtime = createRuntime(this.options)
    const ended =
      'input' in call
        ? runtime.run(graph, call.input as never, { thread: 't' })
        : 'resume' in call
          ? runtime.resume(graph, 't', call.resume)
          : runtime.continue(graph, 't')
    const end = await ended.then(
      ({ status, asks }) => ({ status, asks }),
      (error) => ({ status: 'failed' as const, error: showError(error) }),
    )
    const records = await runtime.history('t')
    const turn = records.slice(records.findLastIndex(({ type }) => type === 'start'))
    stand.through = turn.filter(({ type }) => type === 'step').length
    return end
  }
}
