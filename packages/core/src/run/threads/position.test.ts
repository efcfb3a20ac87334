import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { quiet } from '../../../testing/clock.ts'
import { type Cut, FailingStore } from '../../../testing/failing-store.ts'
import { says } from '../../../testing/play.ts'
import {
  type AnyNode,
  append,
  command,
  createRuntime,
  END,
  type Graph,
  graph,
  type JsonObject,
  merge,
  type NodeContext,
  node,
  type Runtime,
  replaceWith,
  START,
  type StateOf,
  send,
  state,
  tool,
  type UpdateFor,
} from '../../index.ts'

const S = state({
  round: z.number().default(0),
  /** Which payload of a fan-out. */
  i: z.number().default(0),
  r0: z.string().default(''),
  r1: z.string().default(''),
  r2: z.string().default(''),
  list: append(z.string()),
  keys: merge(z.string()),
})
type State = StateOf<typeof S>
type Made = Graph<State, UpdateFor<typeof S>>

/** What a node does before it writes. */
const DEEDS = [
  'tool',
  'two tools',
  'tools beside a question',
  'once',
  'a tool that asks',
  'child',
  'child that remembers',
  'two sub-agents',
  'question',
  'failure that is caught',
  'failure of a tool',
  'failure',
  'turn',
] as const
type Deed = (typeof DEEDS)[number]
interface NodeSpec {
  readonly deeds: readonly Deed[]
  readonly writes: readonly ('replace' | 'append' | 'merge' | 'whole')[]
}
/** Nodes that run together, or, with `sends`, tasks of the first one. */
interface LayerSpec {
  readonly nodes: readonly NodeSpec[]
  readonly sends: number
}
interface GraphSpec {
  readonly layers: readonly LayerSpec[]
  readonly rounds: number
}

const nodeSpec = fc.record<NodeSpec>({
  deeds: fc.array(fc.constantFrom(...DEEDS), { maxLength: 3 }),
  writes: fc.uniqueArray(fc.constantFrom('replace', 'append', 'merge', 'whole'), { maxLength: 3 }),
})
const graphSpec = (most: { layers: number; nodes: number; rounds: number }) =>
  fc.record<GraphSpec>({
    layers: fc.array(
      fc.record({
        nodes: fc.array(nodeSpec, { minLength: 1, maxLength: most.nodes }),
        sends: fc.constantFrom(0, 0, 2, 3),
      }),
      { minLength: 1, maxLength: most.layers },
    ),
    rounds: fc.integer({ min: 1, max: most.rounds }),
  })
const graphs = graphSpec({ layers: 2, nodes: 3, rounds: 2 })
const smallGraphs = graphSpec({ layers: 1, nodes: 2, rounds: 1 })

/** A graph as the spec says, where `flaky` with failures once; `done` counts how often each piece of work outside was done. */
function make({ layers, rounds }: GraphSpec, { flaky = false } = {}) {
  const done = new Map<string, number>()
  const failed = new Set<string>()
  const failOnce = (key: string) => {
    if (!flaky || failed.has(key)) return
    failed.add(key)
    throw new Error(`${key} failed`)
  }
  const work = (key: string) => {
    done.set(key, (done.get(key) ?? 0) + 1)
    return `did ${key}`
  }
  const act = tool('act', {
    description: 'Does some work, and must not do it twice.',
    input: z.object({ key: z.string() }),
    run: async ({ key }) => {
      if (key.endsWith('always')) throw new Error(key)
      if (key.endsWith('once')) failOnce(key)
      const result = work(key)
      await null
      return result
    },
  })
  const asking = tool('asking', {
    description: 'Asks whether it may do some work.',
    input: z.object({ key: z.string() }),
    run: async ({ key }, ctx) => {
      await ctx.ask('sure', key)
      return work(key)
    },
  })
  /** What a person chose to skip counts as done. */
  async function unlessSkipped(key: string, working: Promise<unknown>): Promise<string> {
    try {
      return String(await working)
    } catch (error) {
      if ((error as { code?: string }).code !== 'CALL_SKIPPED') throw error
      return `did ${key}`
    }
  }
  const call = (ctx: NodeContext, key: string) => unlessSkipped(key, ctx.callTool(act, { key }))

  const left = node('left', S, async (s, ctx) => ({ list: [await call(ctx, `${s.r0} left ${s.list.length}`)] }))
  const right = node('right', S, async (s, ctx) => ({
    list: [`${await ctx.ask('q', s.r0)}`, await call(ctx, `${s.r0} right ${s.list.length}`)],
  }))
  const both = node('both', S, () => command({ goto: [left, right] }), { goto: [left, right] })
  const after = node('after', S, (s) => ({ r1: `${s.list.length}` }))
  const child = graph('child', S).edge(START, both).edge(left, after).edge(right, after).edge(after, END).check()

  async function perform(deed: Deed, key: string, ctx: NodeContext): Promise<unknown> {
    const id = key.replaceAll(' ', '_')
    switch (deed) {
      case 'tool':
        return call(ctx, key)
      case 'two tools':
        return Promise.all([call(ctx, `${key} one`), call(ctx, `${key} two`)])
      case 'tools beside a question': {
        const first = call(ctx, `${key} one`).then(() => call(ctx, `${key} two`))
        return Promise.all([first, ctx.ask(id, key), call(ctx, `${key} three`)])
      }
      case 'once':
        return unlessSkipped(
          key,
          ctx.once(key, () => work(key)),
        )
      case 'a tool that asks':
        return unlessSkipped(key, ctx.callTool(asking, { key }))
      case 'child':
        return (await ctx.run(child, { r0: key })).list
      case 'child that remembers':
        return (await ctx.run(child, { r0: key }, { remember: true })).list
      case 'two sub-agents': {
        const inputs = [`${key} one`, `${key} two`]
        const results = await ctx.gather(ctx.spawn(inputs.map((r0) => ({ graph: child, input: { r0 } }))))
        return results.map(({ state }) => (state as State).list)
      }
      case 'question':
        return ctx.ask(id, key)
      case 'failure that is caught':
        return ctx.callTool(act, { key: `${key} always` }).catch(() => call(ctx, `${key} instead`))
      case 'failure of a tool':
        return call(ctx, `${key} once`)
      case 'failure':
        failOnce(key)
        return 'no failure'
      default:
        return quiet().then(() => 'turn')
    }
  }

  const worker = (name: string, at: number, { deeds, writes }: NodeSpec, alone: boolean) =>
    node(name, S, async (s, ctx) => {
      const made: unknown[] = []
      for (const [n, deed] of deeds.entries()) made.push(await perform(deed, `${s.round} ${name} ${s.i} ${n}`, ctx))
      const text = `${name} ${s.i} saw ${s.r0} ${s.list.length} ${made.join()}`
      const update: Record<string, unknown> = {}
      if (writes.includes('replace')) update[`r${at}`] = text
      if (writes.includes('merge')) update.keys = { [`${name} ${s.i}`]: text }
      if (writes.includes('append')) update.list = [text]
      if (writes.includes('whole') && alone) update.list = replaceWith([text])
      return update
    })

  const gates: AnyNode[] = []
  const last = node('last', S, (s) => ({ round: s.round + 1 }))
  const builder = graph('g', S)
  let next: AnyNode = last
  for (const [l, { nodes, sends }] of [...layers.entries()].reverse()) {
    const alone = nodes.length === 1 || sends > 0
    const workers = nodes.map((spec, at) => worker(`w${l}${at}`, at, sends === 0 ? spec : forgetful(spec), alone))
    const first = workers[0] as AnyNode
    const targets = sends === 0 ? workers : Array.from({ length: sends }, (_, i) => send(first, { i: i + 1 }))
    const goto = sends === 0 ? workers : [first]
    const gate = node(`gate${l}`, S, () => command({ goto: targets as AnyNode[] }), { goto })
    for (const each of goto) builder.edge(each, next)
    gates.unshift(gate)
    next = gate
  }
  builder.edge(START, next).when(last, (s: State) => s.round < rounds, { then: next, otherwise: END })
  return { made: builder.check() as Made, done }
}

/** Two tasks of one node may not have runs that remember at once. */
const forgetful = ({ deeds, writes }: NodeSpec): NodeSpec => ({
  deeds: deeds.map((deed) => (deed === 'child that remembers' ? 'child' : deed)),
  writes,
})

const T = { thread: 't' }
const yes = says('Yes', { 'ask.before': ({ subject }) => (isEngine(subject) ? PROCEED : YES) })
const YES = { action: 'replace', value: 'yes' }
const PROCEED = { action: 'proceed' }
const isEngine = (subject: object) => (subject as { askedBy?: string }).askedBy === 'engine'
/** Watches every call, so that raw outcomes are written before they are judged. */
const watching = () =>
  says('Watching', {
    'toolCall.before': PROCEED,
    'toolCall.after': { action: 'pass' },
    'node.before': PROCEED,
    'node.after': { action: 'pass' },
  })

/** The state that an undisturbed run comes to: without a thread, but for runs that remember, which need one. */
async function undisturbed(spec: GraphSpec): Promise<State> {
  const remembers = spec.layers.some(({ nodes }) => nodes.some(({ deeds }) => deeds.includes('child that remembers')))
  const runtime = createRuntime({ policies: [yes] })
  return (await runtime.run(make(spec).made, {}, remembers ? T : {})).state
}

interface Disturbed {
  readonly late: boolean
  readonly watched: boolean
  /** What is said about work that may have been done. */
  readonly orphans: 'retry' | 'skip'
}

/** Goes on with a thread in the way that it stands; `leaves` is how many events are read before the stream is left. */
async function goOn(g: Made, runtime: Runtime, taking: { continue?: true; resume?: JsonObject }, leaves?: number) {
  if (leaves === undefined) {
    if (taking.resume !== undefined) await runtime.resume(g, 't', taking.resume)
    else if (taking.continue) await runtime.continue(g, 't')
    else await runtime.run(g, {}, T)
    return
  }
  let left = leaves
  for await (const _ of runtime.stream(g, undefined, { ...T, ...taking })) if (left-- === 0) break
}

/** Runs on a thread to the end, however often it is cut off, and says how often work may have been done once more. */
async function toTheEnd(g: Made, runtime: Runtime, orphans: Disturbed['orphans'], leaves: readonly number[]) {
  const again = new Map<string, number>()
  for (let goes = 0; goes < 200; goes++) {
    const stands = await runtime.stateAt(g, 't').catch(() => undefined)
    if (stands?.status === 'completed') return { state: stands.state, again }
    // Now and then some questions are left for later.
    const answers = stands?.asks.slice(0, 1 + (goes % 3)).map(({ key, askedBy, payload }) => {
      if (askedBy !== 'engine') return [key, 'yes']
      const about = payload as { readonly once?: string; readonly arguments?: { readonly key: string } }
      const what = about.once ?? about.arguments?.key ?? ''
      const times = (again.get(what) ?? 0) + 1
      again.set(what, times)
      // A call that a person skipped has failed, and is asked about again when its node fails of it and is continued.
      return [key, times === 1 ? orphans : 'retry']
    })
    const taking =
      stands === undefined
        ? {}
        : stands.status === 'paused'
          ? { resume: Object.fromEntries(answers ?? []) }
          : ({ continue: true } as const)
    await goOn(g, runtime, taking, leaves[goes]).catch(() => undefined)
  }
  throw new Error('it never comes to an end')
}

interface Disturbances {
  readonly faults?: readonly { readonly cut: Cut; readonly nth: number }[]
  readonly leaves?: readonly number[]
}

async function disturbed(
  spec: GraphSpec,
  { late, watched, orphans }: Disturbed,
  { faults = [], leaves = [] }: Disturbances = {},
) {
  const { made, done } = make(spec, { flaky: true })
  const store = new FailingStore({ late })
  for (const { cut, nth } of faults) store.fail(cut, { nth })
  const runtime = createRuntime({ store, policies: watched ? [watching()] : [] })
  const { state, again } = await toTheEnd(made, runtime, orphans, leaves)
  return { made, done, store, runtime, state, again }
}

const disturbance = fc.record<Disturbed>({
  late: fc.boolean(),
  watched: fc.boolean(),
  orphans: fc.constantFrom('retry', 'skip'),
})

describe('where a thread stands, read from its records', () => {
  it('is where its run stood: at every place, and at the end', async () => {
    await fc.assert(
      fc.asyncProperty(graphs, fc.boolean(), async (spec, late) => {
        const { made } = make(spec)
        const runtime = createRuntime({ store: new FailingStore({ late }), policies: [yes] })
        const seen: { readonly at: number; readonly state: JsonObject }[] = []
        for await (const event of runtime.stream(made, {}, { ...T, mode: 'values' })) {
          if (event.type === 'values' && event.path.length === 1) seen.push({ at: event.at ?? 0, state: event.state })
        }
        for (const { at, state } of seen) expect((await runtime.stateAt(made, 't', { at })).state).toEqual(state)
        const end = await runtime.stateAt(made, 't')
        expect(end).toMatchObject({ status: 'completed', state: seen.at(-1)?.state, next: [], asks: [] })
        expect(end.state).toEqual(await undisturbed(spec))
      }),
      { numRuns: 50 },
    )
  })
})

describe('a run on a thread comes to the same end as one that nothing disturbs, and does no work twice unless it is told to,', () => {
  const fault = fc.record({ cut: fc.constantFrom<Cut[]>('before', 'after'), nth: fc.integer({ min: 1, max: 40 }) })

  it('when its store fails at any one write, and it is continued', async () => {
    await fc.assert(
      fc.asyncProperty(smallGraphs, disturbance, async (spec, how) => {
        const { store } = await disturbed(spec, how)
        for (const cut of ['before', 'after'] satisfies Cut[]) {
          for (let nth = 1; nth <= store.appends; nth++) await check(spec, how, { faults: [{ cut, nth }] })
        }
      }),
      { numRuns: 10 },
    )
  }, 120_000)

  it('when its store fails again and again', async () => {
    await fc.assert(
      fc.asyncProperty(graphs, disturbance, fc.array(fault, { maxLength: 8 }), (spec, how, faults) =>
        check(spec, how, { faults }),
      ),
      { numRuns: 100 },
    )
  }, 120_000)

  it('when a person skips a call and then has it made, and a sibling fails after that', async () => {
    const fails: NodeSpec = { deeds: ['tool', 'failure', 'tool'], writes: [] }
    const spec: GraphSpec = { layers: [{ nodes: [fails], sends: 3 }], rounds: 1 }
    const how: Disturbed = { late: false, watched: false, orphans: 'skip' }
    await check(spec, how, { faults: [{ cut: 'after', nth: 4 }] })
  })

  it('when it is cut off again and again, on a store that fails too', async () => {
    const leaves = fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 8 })
    await fc.assert(
      fc.asyncProperty(graphs, disturbance, fc.array(fault, { maxLength: 2 }), leaves, (spec, how, faults, leaves) =>
        check(spec, how, { faults, leaves }),
      ),
      { numRuns: 100 },
    )
  }, 120_000)

  async function check(spec: GraphSpec, how: Disturbed, disturbances: Disturbances) {
    const { state, done, again, store, runtime } = await disturbed(spec, how, disturbances)
    expect(state).toEqual(await undisturbed(spec))
    for (const [key, times] of done) expect([key, times <= 1 + (again.get(key) ?? 0)]).toEqual([key, true])
    expect(store.load({ ...T, branch: 'main' })?.beside).toEqual([])
    expect(store.lines()).toMatchObject([{ status: 'completed', asks: '[]', busy: false }])
    const history = await runtime.history('t')
    expect(history.map(({ seq }) => seq)).toEqual(history.map((_, i) => i + 1))
  }
})
