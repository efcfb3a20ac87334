import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { open, quiet } from '../../../testing/clock.ts'
import {
  type AnyNode,
  append,
  command,
  createRuntime,
  END,
  field,
  graph,
  merge,
  type NodeContext,
  node,
  reduced,
  replaceWith,
  START,
  type StateOf,
  send,
  state,
} from '../../index.ts'

const runtime = createRuntime()
const S = state({ i: z.number().default(0), n: z.number().default(0), log: append(z.string()) })
type State = StateOf<typeof S>
type Run = (s: State, ctx: NodeContext) => unknown

/** A graph in which `split` starts these nodes in one superstep; each leads to END. */
function together(runs: Readonly<Record<string, Run>>, order = Object.keys(runs)) {
  const nodes = Object.fromEntries(Object.entries(runs).map(([name, run]) => [name, node(name, S, run as () => void)]))
  const targets = order.map((name) => nodes[name] as AnyNode)
  const split = node('split', S, () => command({ goto: targets }), { goto: Object.values(nodes) })
  const builder = graph('g', S).edge(START, split)
  for (const each of Object.values(nodes)) builder.edge(each, END)
  return builder.check()
}

/** A graph in which `fan` sends the node `work` a task for each payload. */
function fanOut(run: Run, payloads: readonly Record<string, unknown>[]) {
  const work = node('work', S, run as () => void)
  const fan = node('fan', S, () => command({ goto: payloads.map((payload) => send(work, payload)) }), { goto: [work] })
  return graph('g', S).edge(START, fan).edge(work, END).check()
}

describe('a superstep', () => {
  it('runs all ready nodes at once, on the state as of its start', async () => {
    const gates = { a: open<void>(), b: open<void>() }
    const started: string[] = []
    const work = (name: 'a' | 'b') => async (s: State) => {
      started.push(`${name} saw ${s.log.length}`)
      await gates[name].promise
      return { log: [name] }
    }
    const running = runtime.run(together({ a: work('a'), b: work('b') }), {})
    await quiet()
    expect(started).toEqual(['a saw 0', 'b saw 0'])
    gates.b.resolve()
    gates.a.resolve()
    expect((await running).state.log).toEqual(['a', 'b'])
  })
  it('D1: merges updates in the order of the names of the nodes, whichever finished first', async () => {
    const gate = open<void>()
    const graph = together({ a: () => gate.promise.then(() => ({ log: ['a'] })), b: () => ({ log: ['b'] }) }, [
      'b',
      'a',
    ])
    const running = runtime.run(graph, {})
    await quiet()
    gate.resolve()
    expect((await running).state.log).toEqual(['a', 'b'])
  })
  it('D2: runs a node once in the next superstep, however many led to it', async () => {
    const join = node('join', S, () => ({ log: ['join'] }))
    const sides = ['a', 'b', 'c'].map((name) => node(name, S, () => ({ log: [name] })))
    const split = node('split', S, () => command({ goto: sides }), { goto: sides })
    const builder = graph('g', S).edge(START, split).edge(join, END)
    for (const side of sides) builder.edge(side, join)
    const { state, counts } = await runtime.run(builder.check(), {})
    expect(state.log).toEqual(['a', 'b', 'c', 'join'])
    expect(counts.supersteps).toBe(3)
  })
  it('D3: runs a node twice that is reached over ways of unequal length, for there is no barrier', async () => {
    const say = (name: string) => node(name, S, () => ({ log: [name] }))
    const [short, long, longer, join] = [say('short'), say('long'), say('longer'), say('join')]
    const split = node('split', S, () => command({ goto: [short, long] }), { goto: [short, long] })
    const g = graph('g', S).edge(START, split).edge(short, join).edge(long, longer).edge(longer, join).edge(join, END)
    expect((await runtime.run(g.check(), {})).state.log).toEqual(['long', 'short', 'join', 'longer', 'join'])
  })
  it('D4: fails when two nodes write one field without a reducer; the error names field and nodes, and nothing is written', async () => {
    const outcome = await runtime.settle(together({ b: () => ({ n: 1, log: ['b'] }), a: () => ({ n: 1 }) }), {})
    expect(outcome).toMatchObject({
      status: 'failed',
      state: undefined,
      error: { code: 'UPDATE_CONFLICT', at: { field: 'n' } },
    })
    expect((outcome.error as Error).message).toBe(
      'nodes "a", "b" wrote field "n" in one superstep, and it has no reducer that merges them. Give it one, or let one node write it.',
    )
  })
  it('D4: fails too when one of them replaces a field that has a reducer', async () => {
    const graph = together({ a: () => ({ log: ['a'] }), b: () => ({ log: replaceWith(['b']) }) })
    await expect(runtime.run(graph, {})).rejects.toMatchObject({ code: 'UPDATE_CONFLICT', at: { field: 'log' } })
  })
  it('D5: takes the last in the order of scheduling when tasks of one node write one field', async () => {
    const gates = [open<void>(), open<void>(), open<void>()]
    const graph = fanOut((s) => gates[s.i]?.promise.then(() => ({ n: s.i + 10 })), [{ i: 0 }, { i: 1 }, { i: 2 }])
    const running = runtime.run(graph, {})
    for (const i of [2, 1, 0]) {
      await quiet()
      gates[i]?.resolve()
    }
    expect((await running).state.n).toBe(12)
  })
  it('D6: chooses the way on from the merged state, for each task', async () => {
    const seen: (readonly string[])[] = []
    const sides = ['a', 'b'].map((name) => node(name, S, () => ({ log: [name] })))
    const split = node('split', S, () => command({ goto: sides }), { goto: sides })
    const builder = graph('g', S).edge(START, split)
    for (const side of sides) builder.when(side, (s) => seen.push(s.log) > 5, { then: split, otherwise: END })
    await runtime.run(builder.check(), {})
    expect(seen).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ])
  })
  it('counts its tasks: ids are the name of the node, then name[1], name[2]', async () => {
    const ids: string[] = []
    await runtime.run(
      fanOut((_, ctx) => void ids.push(`${ctx.step} ${ctx.taskId}`), [{}, {}, {}]),
      {},
    )
    expect(ids).toEqual(['1 work', '1 work[1]', '1 work[2]'])
  })
})

describe('a send', () => {
  it('is one task in the next superstep, with its payload laid over the state for that task alone', async () => {
    const seen: unknown[] = []
    const graph = fanOut((s) => void seen.push({ ...s }), [{ i: 1 }, { i: 2, log: ['mine'] }, {}])
    const { state } = await runtime.run(graph, { n: 7 })
    expect(seen).toEqual([
      { i: 1, n: 7, log: [] },
      { i: 2, n: 7, log: ['mine'] },
      { i: 0, n: 7, log: [] },
    ])
    expect(state).toEqual({ i: 0, n: 7, log: [] })
  })
  it('D17: leaves alone what its payload gives as undefined', async () => {
    const seen: number[] = []
    await runtime.run(
      fanOut((s) => void seen.push(s.n), [{ n: undefined, i: 1 }]),
      { n: 7 },
    )
    expect(seen).toEqual([7])
  })
  class Payload {
    i = 1
  }
  it.each([
    { name: 'a key that is no field', payload: { j: 1 }, says: 'wrote "j", which is no field of the state' },
    {
      name: 'a value that does not fit',
      payload: { i: 'one' },
      says: 'wrote field "i": the value does not fit its schema',
    },
    { name: 'a replacement', payload: { log: replaceWith([]) }, says: 'uses replaceWith for "log"' },
    { name: 'an instance of a class', payload: new Payload() as never, says: 'gave an instance of Payload' },
  ])('D16: with $name fails the node that sent it; the error names both ends', async ({ payload, says }) => {
    await expect(
      runtime.run(
        fanOut(() => {}, [payload]),
        {},
      ),
    ).rejects.toMatchObject({
      code: 'STATE_UPDATE',
      message: expect.stringContaining(`the send from node "fan" to node "work" ${says}`),
    })
  })
  it('may go to a node that others reach by an edge: that one runs once for the edge and once for each send', async () => {
    const work = node('work', S, (s) => ({ log: [`work ${s.i}`] }))
    const a = node('a', S, () => {})
    const fan = node('fan', S, () => command({ goto: [work, send(work, { i: 1 }), work] }), { goto: [work] })
    const split = node('split', S, () => command({ goto: [a, fan] }), { goto: [a, fan] })
    const g = graph('g', S).edge(START, split).edge(a, work).edge(work, END).check()
    expect((await runtime.run(g, {})).state.log).toEqual(['work 0', 'work 1'])
  })
  it.each([1_000, 10_000])('fans out to %i tasks, which are merged in the order they were sent', async (count) => {
    const payloads = Array.from({ length: count }, (_, i) => ({ i }))
    const { state } = await runtime.run(
      fanOut((s) => ({ log: [String(s.i)], n: s.i }), payloads),
      {},
    )
    expect(state.log).toEqual(payloads.map(({ i }) => String(i)))
    expect(state.n).toBe(count - 1)
  })
  it('merges 2,000 tasks into every kind of field', async () => {
    const All = state({
      i: z.number().default(0),
      list: append(z.number()),
      keys: merge(z.number()),
      sum: reduced(z.number().default(0), (current, update) => (current ?? 0) + update),
      last: field<number>(),
    })
    const work = node('work', All, (s) => ({ list: [s.i], keys: { [s.i % 10]: s.i }, sum: s.i, last: s.i }))
    const all = Array.from({ length: 2_000 }, (_, i) => send(work, { i }))
    const fan = node('fan', All, () => command({ goto: all }), { goto: [work] })
    const { state: made } = await runtime.run(graph('g', All).edge(START, fan).edge(work, END).check(), {})
    expect(made.list).toHaveLength(2_000)
    expect(made).toMatchObject({ sum: 1_999_000, last: 1_999, keys: { 0: 1_990, 9: 1_999 } })
  })
})

describe('a node that fails', () => {
  it.each([
    { name: 'an error', thrown: new Error('no') },
    {
      name: 'an error with a cause and members of its own',
      thrown: Object.assign(new TypeError('no', { cause: 1 }), { status: 429 }),
    },
    { name: 'a text', thrown: 'no' },
    { name: 'nothing', thrown: undefined },
    { name: 'an object that cannot be shown', thrown: Object.create(null) },
  ])('D18: ends the run with the very thing it threw: $name', async ({ thrown }) => {
    for (const fail of [
      () => {
        throw thrown
      },
      () => Promise.reject(thrown),
    ]) {
      const outcome = await runtime.settle(together({ a: fail }), {})
      expect(outcome.status).toBe('failed')
      expect(outcome.error).toBe(thrown)
      const rejected = runtime.run(together({ a: fail }), {})
      expect(
        await rejected.then(
          () => 'not this',
          (error: unknown) => error,
        ),
      ).toBe(thrown)
      const types: string[] = []
      for await (const { type } of runtime.stream(together({ a: fail }), {})) types.push(type)
      expect(types.slice(-2)).toEqual(['node_error', 'run_end'])
    }
  })
  it('D7: ends it at once; its siblings are told, and nothing they do later has an effect', async () => {
    const gate = open<void>()
    const seen: unknown[] = []
    const error = new Error('b failed')
    const slow: Run = async (_, ctx) => {
      ctx.signal.addEventListener('abort', () => seen.push(ctx.signal.reason))
      await gate.promise
      ctx.emit('too late')
      ctx.callTool('rm', {}).then(
        () => seen.push('settled'),
        () => seen.push('settled'),
      )
      return { log: ['too late'] }
    }
    const graph = together({ a: slow, b: () => Promise.reject(error) })
    const events: unknown[] = []
    for await (const event of runtime.stream(graph, {})) events.push(event.type)
    expect(seen).toEqual([error])
    gate.resolve()
    await quiet()
    expect(seen).toEqual([error])
    expect(events).toEqual([
      'run_start',
      'node_start',
      'node_complete',
      'node_start',
      'node_start',
      'node_error',
      'run_end',
    ])
  })
  it('at its start keeps nodes from starting that would have come after it', async () => {
    const started: string[] = []
    const fail = () => {
      throw new Error('a failed')
    }
    const graph = together({ a: fail, b: () => void started.push('b') })
    await expect(runtime.run(graph, {})).rejects.toThrow('a failed')
    expect(started).toEqual([])
  })
  it('leaves no rejection unhandled when several fail', async () => {
    const unhandled: unknown[] = []
    const note = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', note)
    const fail = (name: string) => () => Promise.reject(new Error(name))
    await expect(runtime.run(together({ a: fail('a'), b: fail('b'), c: fail('c') }), {})).rejects.toThrow('a')
    await quiet()
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })
})

describe('run()', () => {
  it('runs no node, predicate, reducer or default inside its own call', async () => {
    const ran: string[] = []
    const Counted = state({
      made: z.string().default(() => String(ran.push('default'))),
      sum: reduced(z.number().default(0), (_, update) => update + 0 * ran.push('reducer')),
    })
    const a = node('a', Counted, () => void ran.push('node'))
    const running = runtime.run(
      graph('g', Counted)
        .edge(START, a)
        .when(a, () => ran.push('predicate') < 0, { then: a, otherwise: END })
        .check(),
      { sum: 1 },
    )
    expect(ran).toEqual([])
    await running
    expect(ran).toEqual(['default', 'reducer', 'node', 'predicate'])
  })
  it('gives each run its own id, the outermost one to all that belongs to its turn', async () => {
    const ids: string[][] = []
    const look: Run = (_, ctx) => void ids.push([ctx.graphName, ctx.nodeName, ctx.runId, ctx.rootRunId])
    const inner = together({ a: look })
    const outer = together({ b: (s, ctx) => Promise.all([look(s, ctx), ctx.run(inner, {})]).then(() => {}) })
    const { runId } = await runtime.run(outer, {})
    const [first, second] = ids
    expect(first).toEqual(['g', 'b', runId, runId])
    expect(second?.[3]).toBe(runId)
    expect(second?.[2]).not.toBe(runId)
  })
})
