import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { says, settle } from '../../testing/play.ts'
import { errorOf, setUp } from '../../testing/threads.ts'
import {
  append,
  command,
  createRuntime,
  END,
  type Graph,
  graph,
  graphNode,
  merge,
  type NodeContext,
  node,
  reduced,
  replaceWith,
  START,
  type StateOf,
  send,
  state,
  type UpdateFor,
} from '../index.ts'

const T = { thread: 't' }

const Notes = state({ notes: append(z.string()), n: z.number().default(0), note: z.string().default('') })
type NotesGraph = Graph<StateOf<typeof Notes>, UpdateFor<typeof Notes>>
type NotesRun = (s: StateOf<typeof Notes>, ctx: NodeContext) => unknown

/** A graph `child` of one node. */
const child = (run: NotesRun, name = 'child'): NotesGraph => {
  const step = node('step', Notes, run as () => undefined)
  return graph(name, Notes).edge(START, step).edge(step, END).check()
}
/** Counts how often it ran, by what it remembers. */
const counting = (name?: string) => child((s) => ({ n: s.n + 1, notes: [`${s.note}${s.n + 1}`] }), name)

const Parent = state({ notes: append(z.string()), text: z.string().default('') })
type ParentGraph = Graph<StateOf<typeof Parent>, UpdateFor<typeof Parent>>

/** A parent whose one node `sub` runs this graph with fields mapped, or shared. */
const mapped = (inner: NotesGraph, remember?: boolean): ParentGraph => {
  const sub = graphNode('sub', Parent, inner, {
    in: (s) => ({ note: s.text }),
    out: (c) => ({ notes: [c.notes.join()] }),
    remember,
  })
  return graph('parent', Parent).edge(START, sub).edge(sub, END).check()
}
const sharing = (inner: NotesGraph, remember?: boolean): ParentGraph => {
  const sub = graphNode('sub', Parent, inner, { share: ['notes'], remember })
  return graph('parent', Parent).edge(START, sub).edge(sub, END).check()
}

describe('a node that runs a graph', () => {
  it('gives it what `in` makes of its state, and returns what `out` makes of the result', async () => {
    const g = mapped(child((s) => ({ notes: [`was given ${s.note}`] })))
    const { state } = await settle({ graph: g, input: { text: 'this' } })
    expect(state).toEqual({ text: 'this', notes: ['was given this'] })
  })

  it('J9: that shares a list hands it in as it is, and gets what the child has added, and nothing twice', async () => {
    const seen: unknown[] = []
    const g = sharing(
      child((s) => {
        seen.push(s.notes)
        return { notes: ['by the child'] }
      }),
    )
    const { state } = await settle({ graph: g, input: { notes: ['one', 'two'] } })
    expect(seen).toEqual([['one', 'two']])
    expect(state.notes).toEqual(['one', 'two', 'by the child'])
  })

  it('that shares a list which the child has replaced replaces it too', async () => {
    const g = sharing(child(() => ({ notes: replaceWith(['anew']) })))
    expect((await settle({ graph: g, input: { notes: ['one'] } })).state.notes).toEqual(['anew'])
  })

  it('that shares fields which the child leaves alone changes nothing', async () => {
    const g = sharing(child(() => ({ n: 7 })))
    expect((await settle({ graph: g, input: { notes: ['one'] } })).state.notes).toEqual(['one'])
  })

  it('shares entries of an object: the parent gets the keys that the child has set', async () => {
    const Shared = state({ by: merge(z.number()) })
    const step = node('step', Shared, () => ({ by: { b: 2 } }))
    const inner = graph('inner', Shared).edge(START, step).edge(step, END).check()
    const sub = graphNode('sub', Shared, inner, { share: ['by'] })
    const other = node('other', Shared, () => ({ by: { c: 3 } }))
    const split = node('split', Shared, () => command({ goto: [sub, other] }), { goto: [sub, other] })
    const g = graph('g', Shared).edge(START, split).edge(sub, END).edge(other, END).check()
    expect((await settle({ graph: g, input: { by: { a: 1 } } })).state.by).toEqual({ a: 1, b: 2, c: 3 })
  })

  it('writes a shared field through the reducer of its own state, whatever that of the child is', async () => {
    const Whole = state({ notes: z.array(z.string()).default([]) })
    const step = node('step', Whole, (s) => ({ notes: [...s.notes, 'by the child'] }))
    const inner = graph('inner', Whole).edge(START, step).edge(step, END).check()
    const sub = graphNode('sub', Parent, inner, { share: ['notes'] })
    const g = graph('g', Parent).edge(START, sub).edge(sub, END).check()
    expect((await settle({ graph: g, input: { notes: ['one'] } })).state.notes).toEqual(['one', 'by the child'])
  })

  const Total = state({ total: reduced(z.number(), (a: number | undefined, b: number) => (a ?? 0) + b) })
  const total = (update: number | undefined) => {
    const step = node('step', Total, () => (update === undefined ? undefined : { total: update }))
    const inner = graph('inner', Total).edge(START, step).edge(step, END).check()
    const sub = graphNode('sub', Total, inner, { share: ['total'] })
    return graph('g', Total).edge(START, sub).edge(sub, END).check()
  }

  it('J12: cannot share a changed field with a reducer of its own: nobody could tell the update, so map it', async () => {
    const { error } = await settle({ graph: total(1), input: { total: 1 } })
    expect(error).toMatchObject({ code: 'STATE_UPDATE', at: { field: 'total' } })
    expect((error as Error).message).toContain('map it with "in" and "out"')
  })

  it('J12: may share it unchanged', async () => {
    expect((await settle({ graph: total(undefined), input: { total: 1 } })).state.total).toBe(1)
  })

  it('is seen by policies under its own type, as are the nodes inside', async () => {
    const watch = says('Watch', { 'node.before': { action: 'proceed' } })
    await settle({ graph: mapped(counting()), policies: [watch] })
    expect(watch.asked.map(({ subject }) => [subject.nodeName, subject.nodeType])).toEqual([
      ['sub', 'GraphNode'],
      ['step', 'Node'],
    ])
  })

  it.each([
    { name: 'no wiring', options: {} },
    { name: 'half a wiring', options: { in: () => ({}) } },
    { name: 'both wirings', options: { in: () => ({}), out: () => ({}), share: ['notes'] } },
    { name: 'nothing shared', options: { share: [] } },
    { name: 'a shared field that it lacks itself', options: { share: ['n'] } },
    { name: 'a shared field that the graph lacks', options: { share: ['text'] } },
  ])('is refused where it is made with $name', ({ options }) => {
    expect(() => graphNode('sub', Parent, counting(), options as never)).toThrow(
      expect.objectContaining({ code: 'GRAPH_INVALID', message: expect.stringContaining('graphNode "sub"') }),
    )
  })

  it('types: what is shared is a field of both states', () => {
    // @ts-expect-error n is no field of the parent
    expect(() => graphNode('sub', Parent, counting(), { share: ['n'] })).toThrow()
    // @ts-expect-error text is no field of the graph
    expect(() => graphNode('sub', Parent, counting(), { share: ['text'] })).toThrow()
  })
})

describe('J10: over two turns of its thread, a graph', () => {
  const turns = async (g: ParentGraph) => {
    const { store } = setUp()
    for (const text of ['a', 'b']) await createRuntime({ store }).run(g, { text }, T)
    return (await createRuntime({ store }).stateAt(g, 't')).state?.notes
  }

  it('forgets, when it is run afresh', async () => {
    expect(await turns(mapped(counting()))).toEqual(['a1', 'b1'])
  })
  it('remembers, when its node says so', async () => {
    expect(await turns(mapped(counting(), true))).toEqual(['a1', 'a1,b2'])
  })
  it('remembers what is not shared, and is given what is', async () => {
    expect(await turns(sharing(counting(), true))).toEqual(['1', '2'])
  })
})

describe('J11: a graph that remembers', () => {
  it('needs a thread to remember in', async () => {
    const { error } = await settle({ graph: mapped(counting(), true) })
    expect(error).toMatchObject({ code: 'REMEMBER_NEEDS_THREAD', at: { node: 'sub' } })
  })

  it('is not run twice at once by its node', async () => {
    const { runtime } = setUp()
    const sub = graphNode('sub', Parent, counting(), { in: () => ({}), out: () => ({}), remember: true })
    const fan = node('fan', Parent, () => command({ goto: [send(sub, {}), send(sub, {})] }), { goto: [sub] })
    const g = graph('parent', Parent).edge(START, fan).edge(sub, END).check()
    expect(await errorOf(runtime.run(g, {}, T))).toMatchObject({ code: 'REMEMBER_BUSY', at: { node: 'sub' } })
  })

  it('goes on in a fork from what it remembered there, and in its origin from what it remembered here', async () => {
    const { store } = setUp()
    const g = mapped(counting(), true)
    const runtime = () => createRuntime({ store })
    await runtime().run(g, { text: 'a' }, T)
    const { branch } = await runtime().fork('t')
    await runtime().run(g, { text: 'b' }, T)
    await runtime().run(g, { text: 'c' }, T)
    await runtime().run(g, { text: 'f' }, { ...T, branch })
    expect((await runtime().stateAt(g, 't')).state?.notes).toEqual(['a1', 'a1,b2', 'a1,b2,c3'])
    expect((await runtime().stateAt(g, 't', { branch })).state?.notes).toEqual(['a1', 'a1,f2'])
  })

  it('goes on from what it remembered when the thread was compacted in between', async () => {
    const { store } = setUp()
    const g = mapped(counting(), true)
    await createRuntime({ store }).run(g, { text: 'a' }, T)
    await createRuntime({ store }).compact(g, 't')
    await createRuntime({ store }).run(g, { text: 'b' }, T)
    expect((await createRuntime({ store }).stateAt(g, 't')).state?.notes).toEqual(['a1', 'a1,b2'])
  })

  it('goes on within one run as it does in another process: round by round of a loop', async () => {
    const sub = graphNode('sub', Parent, counting(), {
      in: () => ({}),
      out: (c) => ({ notes: [c.notes.join()] }),
      remember: true,
    })
    const g = graph('parent', Parent)
      .edge(START, sub)
      .when(sub, (s) => s.notes.length < 3, { then: sub, otherwise: END })
      .check()
    const { runtime } = setUp()
    expect((await runtime.run(g, {}, T)).state.notes).toEqual(['1', '1,2', '1,2,3'])
  })

  /** A parent whose node `sub` runs graphs that remember, and says what they came to. */
  const running = (work: (ctx: NodeContext) => Promise<readonly string[]>): ParentGraph => {
    const sub = node('sub', Parent, async (_s, ctx) => ({ notes: await work(ctx) }))
    return graph('parent', Parent).edge(START, sub).edge(sub, END).check()
  }
  const remember = { remember: true }
  const notesOf = async (coming: Promise<StateOf<typeof Notes>>) => (await coming).notes.join()

  it('may be run several times by one execution of its node, one after another, also over a pause', async () => {
    const { store } = setUp()
    const inner = counting()
    const g = running(async (ctx) => {
      const first = await notesOf(ctx.run(inner, {}, remember))
      await ctx.ask('q', 'go on?')
      return [first, await notesOf(ctx.run(inner, {}, remember))]
    })
    await createRuntime({ store }).run(g, {}, T)
    expect((await createRuntime({ store }).resume(g, 't', 'yes')).state.notes).toEqual(['1', '1,2'])
    await createRuntime({ store }).run(g, {}, T)
    const { state } = await createRuntime({ store }).resume(g, 't', 'yes')
    expect(state.notes).toEqual(['1', '1,2', '1,2,3', '1,2,3,4'])
  })

  it('remembers apart from another graph of the same node, beside which it may run', async () => {
    const { store } = setUp()
    const [x, y] = [counting('x'), counting('y')]
    const g = running((ctx) =>
      Promise.all([notesOf(ctx.run(x, { note: 'x' }, remember)), notesOf(ctx.run(y, { note: 'y' }, remember))]),
    )
    for (let i = 0; i < 2; i++) await createRuntime({ store }).run(g, {}, T)
    expect((await createRuntime({ store }).stateAt(g, 't')).state?.notes).toEqual(['x1', 'y1', 'x1,x2', 'y1,y2'])
  })

  it('remembers nothing of a run that failed, and may be run again by the node that caught that', async () => {
    const { store } = setUp()
    let fails = true
    const first = node('first', Notes, (s) => ({ n: s.n + 1, notes: [`${s.n + 1}`] }))
    const second = node('second', Notes, () => {
      if (fails) throw new Error('no')
    })
    const inner = graph('child', Notes).edge(START, first).edge(first, second).edge(second, END).check()
    const g = running(async (ctx) => {
      const failed = await errorOf(ctx.run(inner, {}, remember))
      fails = false
      return [`${failed?.message}`, await notesOf(ctx.run(inner, {}, remember))]
    })
    await createRuntime({ store }).run(g, {}, T)
    expect((await createRuntime({ store }).stateAt(g, 't')).state?.notes).toEqual(['no', '1'])
    const once = running(async (ctx) => [await notesOf(ctx.run(inner, {}, remember))])
    expect((await createRuntime({ store }).run(once, {}, T)).state.notes.at(-1)).toBe('1,2')
  })

  it.each([
    { name: 'in the same process', crash: false },
    { name: 'and cut off then', crash: true },
  ])('remembers nothing of an execution that was retried, $name', async ({ crash }) => {
    const { store } = setUp()
    const inner = counting()
    const retry = () => says('Retry', { 'nodeError.after': { action: 'retry' } })
    const runtime = () => createRuntime({ store, policies: [retry()] })
    const g = running(async (ctx) => {
      const notes = await notesOf(ctx.run(inner, {}, remember))
      if (ctx.attempt === 1) throw new Error('again')
      return [notes]
    })
    if (crash) store.fail('before', { type: 'call', nth: 2 })
    const outcome = await runtime().settle(g, {}, T)
    expect(outcome.status).toBe(crash ? 'failed' : 'completed')
    if (crash) await runtime().continue(g, 't')
    expect((await runtime().stateAt(g, 't')).state?.notes).toEqual(['1'])
    await runtime().run(g, {}, T)
    expect((await runtime().stateAt(g, 't')).state?.notes).toEqual(['1', '1,2'])
  })

  it('is under way no longer when the execution that started it was given up', async () => {
    const { store } = setUp()
    const inner = child((s) => (s.note === 'hang' ? new Promise(() => {}) : { n: s.n + 1, notes: [`${s.n + 1}`] }))
    const retry = says('Retry', { 'nodeError.after': { action: 'retry' } })
    const g = running((ctx) => {
      const run = notesOf(ctx.run(inner, ctx.attempt === 1 ? { note: 'hang' } : {}, remember))
      return ctx.attempt === 1 ? Promise.reject(new Error('no patience')) : run.then((notes) => [notes])
    })
    const { state } = await createRuntime({ store, policies: [retry] }).run(g, {}, T)
    expect(state.notes).toEqual(['1'])
  })

  it('remembers what it came to beside a question, when the run goes on to run it again', async () => {
    const { store } = setUp()
    const sub = graphNode('sub', Parent, counting(), {
      in: () => ({}),
      out: (c) => ({ notes: [c.notes.join()] }),
      remember: true,
    })
    const asks = node('asks', Parent, async (_s, ctx) => ({ notes: [`${await ctx.ask('q', 'well?')}`] }))
    const split = node('split', Parent, () => command({ goto: [asks, sub] }), { goto: [asks, sub] })
    const g = graph('parent', Parent)
      .edge(START, split)
      .edge(asks, END)
      .when(sub, (s) => s.notes.length < 3, { then: sub, otherwise: END })
      .check()
    await createRuntime({ store }).run(g, {}, T)
    expect((await createRuntime({ store }).resume(g, 't', 'yes')).state.notes).toEqual(['yes', '1', '1,2'])
  })

  it('is asked about at its door in each run: what was answered about an earlier one is not remembered', async () => {
    const { store } = setUp()
    const gate = () =>
      says('Gate', {
        'run.before': ({ subject }, { answered }) =>
          subject.nested && answered === undefined ? { action: 'suspend', ask: {} } : { action: 'proceed' },
      })
    const g = mapped(counting(), true)
    const runtime = () => createRuntime({ store, policies: [gate()] })
    for (const notes of [['1'], ['1', '1,2']]) {
      const paused = await runtime().run(g, {}, T)
      expect(paused.asks.map(({ askedBy }) => askedBy)).toEqual(['policy:Gate'])
      expect((await runtime().resume(g, 't', 'let in')).state.notes).toEqual(notes)
    }
  })
})
