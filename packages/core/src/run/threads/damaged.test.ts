import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock, patience } from '../../../testing/clock.ts'
import { append, createRuntime, END, graph, type Loaded, MemoryStore, node, START, state, tool } from '../../index.ts'
import type { Line } from '../../store/store.ts'

const S = state({ log: append(z.string()), note: z.string().default('') })

/** A store whose content is edited by hand on its way out. */
class Edited extends MemoryStore {
  edit: (text: string) => string = (text) => text

  override load(line: Line): Loaded | undefined {
    const loaded = super.load(line)
    return (
      loaded && {
        ...loaded,
        records: loaded.records.map(this.edit),
        beside: loaded.beside.map(([key, text]) => [key, this.edit(text)] as const),
      }
    )
  }
}

async function pausedThread() {
  const ran: string[] = []
  const act = tool('act', {
    description: 'acts',
    input: z.object({ n: z.number() }),
    run: ({ n }) => ran.push(`act ${n}`),
  })
  const work = node('work', S, async (_s, ctx) => {
    ran.push('work')
    await ctx.callTool(act, { n: 1 })
    return { log: [`${await ctx.ask('q', 'go on?')}`] }
  })
  const g = graph('g', S).edge(START, work).edge(work, END).check()
  const store = new Edited()
  const platform = new Clock()
  const runtime = createRuntime({ store, platform })
  await runtime.run(g, { note: 'begun' }, { thread: 't' })
  ran.length = 0
  return { g, store, platform, runtime, ran, before: store.read({ thread: 't', branch: 'main' }) }
}

const replace = (from: string, to: string) => (text: string) => text.replace(from, to)

describe('a thread whose records were damaged', () => {
  it.each([
    {
      name: 'a record that was cut off',
      edit: (text: string) => (text.includes('"ask"') ? text.slice(0, 40) : text),
      code: 'THREAD_DAMAGED',
    },
    {
      name: 'a record that is no object',
      edit: (text: string) => (text.includes('"type":"begin"') ? '[]' : text),
      code: 'THREAD_DAMAGED',
    },
    { name: 'a record of an unknown type', edit: replace('"type":"begin"', '"type":"began"'), code: 'THREAD_DAMAGED' },
    {
      name: 'a type that is the name of a method',
      edit: replace('"type":"begin"', '"type":"toString"'),
      code: 'THREAD_DAMAGED',
    },
    {
      name: 'a record without what it must have',
      edit: replace('"next":["work"]', '"then":["work"]'),
      code: 'THREAD_DAMAGED',
    },
    { name: 'a member of the wrong kind', edit: replace('"next":["work"]', '"next":"work"'), code: 'THREAD_DAMAGED' },
    {
      name: '__proto__ in a state',
      edit: replace('"note":"begun"', '"note":"begun","__proto__":{"x":1}'),
      code: 'THREAD_DAMAGED',
    },
    {
      name: '__proto__ in a result',
      edit: replace('"ok":true,"value":2', '"ok":true,"value":{"__proto__":{"x":1}}'),
      code: 'THREAD_DAMAGED',
    },
    {
      name: 'a field that the state does not have',
      edit: replace('"note":"begun"', '"other":"begun"'),
      code: 'THREAD_STATE',
    },
    { name: 'a value that does not fit its field', edit: replace('"note":"begun"', '"note":7'), code: 'THREAD_STATE' },
    {
      name: 'a node that the graph does not have',
      edit: replace('"next":["work"]', '"next":["gone"]'),
      code: 'THREAD_NODE_GONE',
    },
  ])('is refused by name, and nothing runs and nothing is lost: $name', async ({ edit, code }) => {
    const { g, store, runtime, ran, before } = await pausedThread()
    store.edit = edit
    await expect(runtime.resume(g, 't', 'yes')).rejects.toMatchObject({ code })
    expect(ran).toEqual([])
    expect(store.read({ thread: 't', branch: 'main' })).toEqual(before)
    store.edit = (text) => text
    expect((await runtime.resume(g, 't', 'yes')).state.log).toEqual(['yes'])
  })

  it('names which record, and says that nothing was run', async () => {
    const { g, store, runtime } = await pausedThread()
    store.edit = replace('"type":"begin"', '"type":"began"')
    await expect(runtime.resume(g, 't', 'yes')).rejects.toThrow(/record 2 of thread "t".*Nothing was run/)
  })

  it('makes no object of a class that a record names', async () => {
    const { g, store, runtime, ran } = await pausedThread()
    store.edit = replace('"ok":true,"value":2', '"ok":false,"error":{"name":"Function","message":"x","code":"X"}')
    const outcome = runtime.resume(g, 't', 'yes')
    await expect(outcome).rejects.toMatchObject({ name: 'Function', message: 'x', code: 'X' })
    await expect(outcome).rejects.toSatisfy((error) => Object.getPrototypeOf(error) === Error.prototype)
    expect(ran).toEqual(['work'])
  })

  it('calls a tool whose recorded input was changed not again: the run ends and says that the code has changed', async () => {
    const { g, store, platform, runtime, ran } = await pausedThread()
    store.edit = (text) => text.replace(/"digest":"h1:[0-9a-f]{16}"/, '"digest":"h1:0000000000000000"')
    const refused = expect(runtime.resume(g, 't', 'yes')).rejects.toMatchObject({ code: 'CODE_CHANGED' })
    await patience(platform)
    await refused
    expect(ran).toEqual(['work'])
  })
})
