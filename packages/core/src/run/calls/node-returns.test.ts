import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
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

const S = state({
  n: z.number().default(1),
  log: append(z.string()),
  scores: merge(z.number()),
  sum: reduced(z.number().default(0), (current, update) => (current ?? 0) + update),
  any: field<unknown>({ list: [1] }),
})
type State = StateOf<typeof S>
const start = { n: 1, log: ['a'], scores: { x: 1 }, sum: 0, any: { list: [1] } }

/** Runs a graph whose one node `step` may go on to `next`. */
const running = async (step: (s: State, ctx: NodeContext) => unknown) => {
  const next = node('next', S, () => ({ log: ['next'] }))
  const first = node('step', S, step as () => undefined, { goto: [next, END] })
  const g = graph('g', S).edge(START, first).edge(first, END).edge(next, END).check()
  return (await runtime.run(g, { log: ['a'], scores: { x: 1 } })).state
}

/** The state as the language's own checks see it: something one may try to write to. */
// biome-ignore lint/suspicious/noExplicitAny: these tests do what the types forbid
const open = (s: State) => s as any

describe('a node returns', () => {
  it.each<{ name: string; returns: (s: State) => unknown; changes: object }>([
    { name: 'nothing', returns: () => undefined, changes: {} },
    { name: 'null', returns: () => null, changes: {} },
    { name: 'an update', returns: () => ({ n: 2, log: ['b'] }), changes: { n: 2, log: ['a', 'b'] } },
    { name: 'a command with an update', returns: () => command({ update: { n: 2 } }), changes: { n: 2 } },
    { name: 'the state it was given, which changes nothing', returns: (s) => s, changes: {} },
    {
      name: 'B4: a command with the state it was given, which changes nothing',
      returns: (s) => command({ update: s as never }),
      changes: {},
    },
    { name: 'a promise of one of these', returns: async () => ({ n: 2 }), changes: { n: 2 } },
    {
      name: 'a thenable that is no promise',
      returns: () => ({ then: (done: (update: object) => void) => done({ n: 2 }) }),
      changes: { n: 2 },
    },
    { name: 'END', returns: () => END, changes: {} },
  ])('$name', async ({ returns, changes }) => {
    expect(await running(returns)).toEqual({ ...start, ...changes })
  })

  class Update {
    n = 2
  }
  it.each([
    {
      name: 'a text',
      returned: 'n = 2',
      says: 'node "step" returned a string; a node returns an update (an object), command(…), send(…), END or nothing.',
    },
    { name: 'a number', returned: 2, says: 'node "step" returned a number; a node' },
    { name: 'a list', returned: [{ n: 2 }], says: 'node "step" returned a list; a node' },
    { name: 'START', returned: START, says: 'node "step" returned a symbol; a node' },
    {
      name: 'B3: an instance of a class',
      returned: new Update(),
      says: 'node "step" gave an instance of Update where a plain object of fields is needed.',
    },
    { name: 'a map', returned: new Map([['n', 2]]), says: 'node "step" gave an instance of Map where' },
    {
      name: 'a command whose update is a list',
      returned: command({ update: [] }),
      says: 'node "step" gave a list where',
    },
    {
      name: 'B8: a set in a field',
      returned: { any: new Set([1]) },
      says: 'node "step": the value is not JSON at any: it is an instance of Set',
    },
  ])('and not $name', async ({ returned, says }) => {
    await expect(running(() => returned)).rejects.toThrow(says)
  })
  it('B3: no copy of its state, which would give growing lists back to themselves', async () => {
    await expect(running((s) => ({ ...s, n: 2 }))).rejects.toThrow(
      'cannot be merged into field "log": it was given its own current list',
    )
  })
  it('a wrong thing without harm to anybody: nothing of it is written', async () => {
    const bad = node('bad', S, () => ({ n: 2, log: 'b' }) as never)
    const outcome = await runtime.settle(graph('g', S).edge(START, bad).edge(bad, END).check(), {})
    expect(outcome).toMatchObject({
      status: 'failed',
      state: undefined,
      error: { code: 'STATE_UPDATE', at: { field: 'log' } },
    })
  })
})

describe('the state a node is given cannot be changed', () => {
  it.each<{ name: string; change: (s: State) => unknown }>([
    { name: 'B1: append to a list', change: (s) => open(s).log.push('b') },
    { name: 'B2: set a field', change: (s) => Object.assign(s, { n: 2 }) },
    { name: 'B5: delete a key', change: (s) => delete open(s).n },
    { name: 'B6: change a field with a reducer of your own', change: (s) => Object.assign(s, { sum: 2 }) },
    { name: 'B7: change 1 to true', change: (s) => Object.assign(s, { n: true }) },
    { name: 'B9: add a key to a merge field', change: (s) => Object.assign(s.scores, { y: 2 }) },
    { name: 'B9: delete a key of a merge field', change: (s) => delete open(s).scores.x },
    { name: 'change what lies deep in it', change: (s) => open(s).any.list.push(2) },
  ])('$name: it throws, and the run fails with that very error', async ({ change }) => {
    const thrown: unknown[] = []
    const run = running((s) => {
      try {
        change(s)
      } catch (error) {
        thrown.push(error)
        throw error
      }
    })
    const failure = await run.catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(TypeError)
    expect(failure).toBe(thrown[0])
  })
  it('B2: nor does a node that catches that have changed anything', async () => {
    const state = await running((s) => {
      expect(() => open(s).log.push('b')).toThrow(TypeError)
      return { n: 2 }
    })
    expect(state).toEqual({ ...start, n: 2 })
  })
  it('B1: what it adds to a list it returns, and the list grows by that', async () => {
    expect((await running((s) => ({ log: [`after ${s.log.at(-1)}`] }))).log).toEqual(['a', 'after a'])
  })
  it('B9: a key is taken out of a merge field by replacing the whole', async () => {
    expect(
      (await running(({ scores: { x, ...rest } }) => ({ scores: replaceWith({ ...rest, y: x }) }))).scores,
    ).toEqual({ y: 1 })
  })
  it('B10: nor can a predicate or a key change it', async () => {
    const a = node('a', S, () => {})
    const by = (predicate: (s: State) => boolean) =>
      runtime.run(graph('g', S).edge(START, a).when(a, predicate, { then: a, otherwise: END }).check(), {})
    await expect(by((s) => open(s).log.push('x') > 0)).rejects.toBeInstanceOf(TypeError)
    const g = graph('g', S)
      .edge(START, a)
      .branch(a, (s) => delete open(s).n, { true: END })
      .check()
    await expect(runtime.run(g, {})).rejects.toBeInstanceOf(TypeError)
  })
  it('B11: tasks of different nodes that write one field meet the rule for conflicts, for writing is returning', async () => {
    const left = node('left', S, () => ({ n: 2 }))
    const right = node('right', S, () => ({ n: 2 }))
    const split = node('split', S, () => command({ goto: [send(left), send(right)] }), { goto: [left, right] })
    const g = graph('g', S).edge(START, split).edge(left, END).edge(right, END).check()
    await expect(runtime.run(g, {})).rejects.toMatchObject({ code: 'UPDATE_CONFLICT', at: { field: 'n' } })
  })
})
