import { SluiceError } from '../errors/error.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { inOrder } from '../seams/order.ts'
import type { OwnMiddleware } from '../seams/own.ts'
import type { AnyState, StateType } from '../state/state.ts'
import type { Startable } from '../tools/inside.ts'
import { type AnyNode, isNode, type Values } from './node.ts'
import { END, START, type Target } from './route.ts'

/** The way on from a node, chosen on the merged state. */
export type Exit =
  | { readonly kind: 'edges'; readonly plain: Target | undefined; readonly labelled: ReadonlyMap<string, Target> }
  | {
      readonly kind: 'when'
      readonly predicate: (state: never) => unknown
      readonly then: Target
      readonly otherwise: Target
    }
  | { readonly kind: 'branch'; readonly key: (state: never) => unknown; readonly targets: ReadonlyMap<unknown, Target> }

/**
 * What goes into a run and what comes out of it, where that is not simply an update of the state and the state it ended with.
 * A flow takes its declared inputs and yields its declared outputs, and that is what policies see of it.
 */
export interface Boundary {
  /** Checks an input, the caller's or a policy's; throws what is wrong. */
  checkInput(input: Json): JsonObject
  /** The update of the state that a checked input comes to. */
  update(input: JsonObject): JsonObject
  /** Checks a result that a policy gave; throws what is wrong. */
  checkResult(value: Json): JsonObject
  /** The result; `ended` names the last nodes. */
  result(values: Values, ended: readonly string[]): JsonObject
}

/** A checked graph as the engine reads it. */
export interface GraphPlan {
  readonly name: string
  readonly state: AnyState
  readonly start: readonly AnyNode[]
  readonly nodes: ReadonlyMap<string, AnyNode>
  readonly exits: ReadonlyMap<AnyNode, Exit>
  readonly boundary?: Boundary
  /** Turns what a run may be given in place of an update of the state into one; hands back what it does not know. */
  readonly accepts?: (input: unknown) => unknown
  /** Own middleware, in the order in which it stands around each call. */
  readonly middleware: readonly OwnMiddleware[]
}

// biome-ignore lint/suspicious/noExplicitAny: as for OwnMiddleware
export interface GraphOptions<S = any> {
  /** Middleware around every node, model call and tool call of its runs, in this order. */
  readonly middleware?: readonly OwnMiddleware<S>[]
}

/** What the runtime can run: a checked graph. */
export interface Runnable<State = unknown, Update = unknown> extends Startable<State, Update> {
  readonly plan: GraphPlan
}

interface EdgeOptions {
  /** Followed when the node chose this branch; without it, the edge is the node's ordinary way on. */
  readonly branch?: string
}

/**
 * Declares a graph, edge by edge. Nothing is checked before {@link GraphBuilder.check}, which reports every fault at once and
 * hands over what `make` makes of the plan.
 */
export class GraphBuilder<T extends StateType<never, never> | StateType, Checked> {
  readonly #name: string
  readonly #state: T
  readonly #make: (plan: GraphPlan) => Checked
  readonly #start: Target[] = []
  readonly #nodes = new Map<string, AnyNode>()
  readonly #exits = new Map<AnyNode, Exit>()
  readonly #faults: string[] = []
  readonly #middleware: readonly OwnMiddleware[]
  #boundary: Boundary | undefined

  /** @throws TypeError, SluiceError `MIDDLEWARE_ORDER`; see {@link inOrder}. */
  constructor(name: string, state: T, make: (plan: GraphPlan) => Checked, { middleware = [] }: GraphOptions = {}) {
    this.#middleware = inOrder(middleware)
    this.#name = name
    this.#state = state
    this.#make = make
  }

  /** Leads from a node, or from `START`, to a node or to `END`. Several plain edges from one node are a fault: route with `goto` or `send`. */
  edge(from: typeof START | AnyNode, to: Target, { branch }: EdgeOptions = {}): this {
    if ((from !== START && !this.#isSource(from, 'edge')) || !this.#isTarget(to, 'edge')) return this
    if (from === START) {
      if (this.#start.push(to) > 1)
        this.#faults.push('START has more than one edge; let it lead to one node that routes on')
      return this
    }
    const exit = this.#exits.get(from) ?? { kind: 'edges', plain: undefined, labelled: new Map() }
    if (exit.kind !== 'edges') return this.#second(from)
    const taken = branch === undefined ? exit.plain !== undefined : exit.labelled.has(branch)
    if (taken) return this.#second(from, branch)
    this.#exits.set(from, {
      kind: 'edges',
      plain: branch === undefined ? to : exit.plain,
      labelled: branch === undefined ? exit.labelled : new Map([...exit.labelled, [branch, to]]),
    })
    return this
  }

  /** Goes one of two ways by a predicate on the merged state; it must answer `true` or `false`. */
  when<S>(
    from: AnyNode & { run(state: S, ctx: never): unknown },
    predicate: (state: S) => boolean,
    ways: { then: Target; otherwise: Target },
  ): this {
    if (!this.#isSource(from, 'when')) return this
    const { then, otherwise } = ways ?? {}
    if (typeof predicate !== 'function') this.#faults.push(`when("${from.name}", …) needs a predicate`)
    const whole = this.#isTarget(then, 'then') && this.#isTarget(otherwise, 'otherwise')
    return whole
      ? this.#exit(from, { kind: 'when', predicate: predicate as (state: never) => unknown, then, otherwise })
      : this
  }

  /** Goes the way that a key, computed from the merged state, has in the table; a key without a way is an error of the run. */
  branch<S>(
    from: AnyNode & { run(state: S, ctx: never): unknown },
    key: (state: S) => unknown,
    ways: Readonly<Record<string, Target>>,
  ): this {
    if (!this.#isSource(from, 'branch')) return this
    const targets = new Map<unknown, Target>(Object.entries(ways ?? {}))
    if (typeof key !== 'function') this.#faults.push(`branch("${from.name}", …) needs a function that computes the key`)
    if (targets.size === 0) this.#faults.push(`branch("${from.name}", …) has no ways`)
    for (const [name, target] of targets) this.#isTarget(target, name as string)
    return this.#exit(from, { kind: 'branch', key: key as (state: never) => unknown, targets })
  }

  /** Says what a run takes and what it results in, where that is not the state. */
  boundary(boundary: Boundary): this {
    this.#boundary = boundary
    return this
  }

  /** @throws SluiceError `GRAPH_INVALID`, one message that lists every fault and its mend. */
  check(): Checked {
    const faults = [...this.#faults, ...this.#findFaults()]
    if (faults.length > 0) {
      throw new SluiceError(
        'GRAPH_INVALID',
        `graph "${this.#name}" has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}:\n- ${faults.join('\n- ')}`,
        { graph: this.#name },
      )
    }
    return this.#make({
      name: this.#name,
      state: this.#state as AnyState,
      start: this.#start.filter(isNode),
      nodes: new Map(this.#nodes),
      exits: new Map(this.#exits),
      boundary: this.#boundary,
      middleware: this.#middleware,
    })
  }

  #exit(from: AnyNode, exit: Exit): this {
    if (this.#exits.has(from)) return this.#second(from)
    this.#exits.set(from, exit)
    return this
  }

  #second(from: AnyNode, branch?: string): this {
    const which = branch === undefined ? 'a second way on' : `a second edge for branch "${branch}"`
    this.#faults.push(
      `node "${from.name}" has ${which}; a node has one edge, one when or one branch, and fans out with goto or send`,
    )
    return this
  }

  #isSource(from: unknown, where: string): from is AnyNode {
    if (isNode(from)) {
      this.#join(from)
      return true
    }
    this.#faults.push(`${where}(…) begins at ${from === END ? 'END' : 'what is missing or no node'}; give a node`)
    return false
  }

  #isTarget(target: unknown, where: string): target is Target {
    if (target === END) return true
    if (isNode(target)) {
      this.#join(target)
      return true
    }
    this.#faults.push(
      `the target of "${where}" is ${target === START ? 'START' : 'missing or no node'}; give a node or END`,
    )
    return false
  }

  /** A node joins with everything it may choose itself. */
  #join(node: AnyNode): void {
    const known = this.#nodes.get(node.name)
    if (known === node) return
    if (known !== undefined) {
      this.#faults.push(`two nodes are named "${node.name}"; a name is a node's identity, so rename one`)
      return
    }
    this.#nodes.set(node.name, node)
    for (const target of node.goto) if (isNode(target)) this.#join(target)
  }

  #findFaults(): string[] {
    const faults: string[] = []
    if (this.#name.trim() === '') faults.push('the graph needs a name')
    if (this.#start.length === 0) faults.push('nothing starts it: add edge(START, node)')
    if (this.#start[0] === END) faults.push('START leads to END and nothing runs: add edge(START, node)')
    faults.push(...this.#middleware.flatMap((own) => misfitOf(own, this.#state as AnyState)))
    const reached = this.#reachable()
    for (const node of this.#nodes.values()) {
      if (!this.#exits.has(node) && node.goto.length === 0)
        faults.push(`node "${node.name}" has no way on: add edge(${node.name}, END), a when or branch, or goto`)
      if (!reached.has(node)) faults.push(`node "${node.name}" is never reached: no edge leads to it from START`)
      for (const target of node.goto) {
        if (typeof target === 'string' && !this.#nodes.has(target))
          faults.push(`node "${node.name}" lists goto "${target}", and no node has that name`)
        else if (typeof target !== 'string' && target !== END && !isNode(target))
          faults.push(`node "${node.name}" lists a goto that is missing or no node; list nodes, their names or END`)
      }
    }
    return faults
  }

  #reachable(): Set<AnyNode> {
    const reached = new Set<AnyNode>()
    const queue = this.#start.filter(isNode)
    for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
      if (reached.has(node)) continue
      reached.add(node)
      queue.push(...this.#next(node))
    }
    return reached
  }

  #next(node: AnyNode): AnyNode[] {
    const chosen = node.goto.map((target) => (typeof target === 'string' ? this.#nodes.get(target) : target))
    const exit = this.#exits.get(node)
    return [...chosen, ...(exit === undefined ? [] : targetsOf(exit))].filter(isNode)
  }
}

/** What is wrong with a middleware that names its state, where the graph's has not all fields of it. */
function misfitOf({ name, '~fields': fields = [] }: OwnMiddleware, { names }: AnyState): readonly string[] {
  const missing = fields.filter((field) => !names.includes(field)).map((field) => `"${field}"`)
  if (missing.length === 0) return []
  return [`middleware "${name}" is for a state with ${missing.join(', ')}, and the graph's has ${names.join(', ')}`]
}

/** Every target an exit may lead to. */
function targetsOf(exit: Exit): readonly Target[] {
  if (exit.kind === 'when') return [exit.then, exit.otherwise]
  if (exit.kind === 'branch') return [...exit.targets.values()]
  const labelled = [...exit.labelled.values()]
  return exit.plain === undefined ? labelled : [exit.plain, ...labelled]
}
