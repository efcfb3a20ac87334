import { describe, expect, it } from 'vitest'
import { agentGraph, calls, contents, strict, Talk, user } from '../../../testing/agent.ts'
import { FailingStore } from '../../../testing/failing-store.ts'
import { says } from '../../../testing/play.ts'
import {
  agentNode,
  type ChatMessage,
  type ChatModel,
  type ChatRequest,
  createRuntime,
  END,
  graph,
  MemoryStore,
  type ScriptedReply,
  START,
  scripted,
  TodoListMiddleware,
  ToolInterruptMiddleware,
} from '../../index.ts'

const T = { thread: 't' }

//#region todos
/** An agent that writes down what it has to do. */
const planner = (model: ChatModel) => {
  const todos = new TodoListMiddleware()
  const agent = agentNode('agent', Talk, { model, tools: todos.tools() })
  return graph('planner', Talk, { middleware: [todos] })
    .edge(START, agent)
    .edge(agent, END)
    .check()
}
//#endregion

const write = (items: readonly object[], rest: object = {}) => calls(['write_todos', { items, ...rest }])
const read = calls(['read_todos', {}])
/** What each tool call gave. */
const results = (said: readonly ChatMessage[]) =>
  said.flatMap(({ role, content }) =>
    role === 'tool' ? [content.startsWith('{') ? JSON.parse(content) : content] : [],
  )

const pending = (...tasks: readonly string[]) => ({ items: tasks.map((task) => ({ task, state: 'pending' })) })

describe('a to-do list', () => {
  it('is empty at first, is written as a whole, and is read as it stands', async () => {
    const items = [{ task: 'look', state: 'completed' }, { task: 'pay' }]
    const { state } = await createRuntime().run(planner(strict([read, write(items), read, 'done'])), user('go'))
    const written = {
      items: [
        { task: 'look', state: 'completed' },
        { task: 'pay', state: 'pending' },
      ],
    }
    expect(results(state.messages)).toEqual([{ items: [] }, written, written])
  })

  it('is added to, when it is not to be replaced', async () => {
    const model = strict([write([{ task: 'a' }]), write([{ task: 'b' }], { replace: false }), 'done'])
    const { state } = await createRuntime().run(planner(model), user('go'))
    expect(results(state.messages).at(-1)).toEqual(pending('a', 'b'))
  })

  it('stands with the thread: the next turn, and another process, go on with it', async () => {
    const store = new MemoryStore()
    await createRuntime({ store }).run(planner(strict([write([{ task: 'a' }]), 'done'])), user('go'), T)
    const { state } = await createRuntime({ store }).run(planner(strict([read, 'done'])), user('on'), T)
    expect(results(state.messages).at(-1)).toEqual(pending('a'))
  })

  it('H25: is another one on another thread', async () => {
    const runtime = createRuntime()
    const model = strict([write([{ task: 'a' }]), 'done', read, 'done'])
    await runtime.run(planner(model), user('go'), { thread: 'one' })
    const { state } = await runtime.run(planner(model), user('go'), { thread: 'two' })
    expect(results(state.messages)).toEqual([{ items: [] }])
  })

  it('H25: is another one under another name', async () => {
    const [mine, yours] = [new TodoListMiddleware({ name: 'mine' }), new TodoListMiddleware({ name: 'yours' })]
    const first = agentNode('first', Talk, { model: strict([write([{ task: 'a' }]), 'done']), tools: mine.tools() })
    const second = agentNode('second', Talk, { model: strict([read, 'done']), tools: yours.tools() })
    const g = graph('g', Talk, { middleware: [mine, yours] })
      .edge(START, first)
      .edge(first, second)
      .edge(second, END)
      .check()
    const { state } = await createRuntime().run(g, user('go'), T)
    expect(results(state.messages)).toEqual([pending('a'), { items: [] }])
  })

  it('H25: without a thread lasts as long as the run', async () => {
    const runtime = createRuntime()
    const model = strict([write([{ task: 'a' }]), read, 'done', read, 'done'])
    const one = await runtime.run(planner(model), user('go'))
    expect(results(one.state.messages).at(-1)).toEqual(pending('a'))
    const two = await runtime.run(planner(model), user('go'))
    expect(results(two.state.messages)).toEqual([{ items: [] }])
  })

  it('goes along with a fork, and from there each branch has its own', async () => {
    const runtime = createRuntime()
    const add = (task: string) => write([{ task }], { replace: false })
    const model = strict([add('a'), 'done', add('b'), 'done', add('c'), 'done'])
    await runtime.run(planner(model), user('go'), T)
    await runtime.fork('t', { name: 'other' })
    await runtime.run(planner(model), user('go'), T)
    const { state } = await runtime.run(planner(model), user('go'), { ...T, branch: 'other' })
    expect(results(state.messages).at(-1)).toEqual(pending('a', 'c'))
  })

  it('is written one call after another in a round: the last one stands', async () => {
    const both = calls(['write_todos', { items: [{ task: 'a' }] }], ['write_todos', { items: [{ task: 'b' }] }])
    const { state } = await createRuntime().run(planner(strict([both, read, 'done'])), user('go'), T)
    expect(results(state.messages).at(-1)).toEqual(pending('b'))
  })

  it('is seen by a policy, and by other middleware, like any call', async () => {
    const gate = says('Gate', { 'toolCall.before': { action: 'reject', reason: 'no plans' } })
    const refused = planner(strict([write([{ task: 'a' }]), 'done']))
    const { state } = await createRuntime({ policies: [gate] }).run(refused, user('go'), T)
    expect(contents(state.messages)[2]).toBe('tool: Refused: no plans')

    const todos = new TodoListMiddleware()
    const approvals = new ToolInterruptMiddleware({ rules: [{ tool: '*' }] })
    const model = strict([write([{ task: 'a' }]), 'done'])
    const asked = agentGraph({ model, tools: todos.tools(), middleware: [todos, approvals] })
    const store = new MemoryStore()
    expect((await createRuntime({ store }).run(asked, user('go'), T)).status).toBe('paused')
    const resumed = await createRuntime({ store }).resume(asked, 't', true)
    expect(results(resumed.state.messages)).toEqual([pending('a')])
  })

  it('works where only its tools are given to an agent', async () => {
    const model = strict([write([{ task: 'a' }]), read, 'done'])
    const agent = agentGraph({ model, tools: new TodoListMiddleware().tools() })
    expect(results((await createRuntime().run(agent, user('go'), T)).state.messages)).toEqual([
      pending('a'),
      pending('a'),
    ])
  })

  it('has each item once, whichever write is lost in a crash', async () => {
    const play = async (nth: number, cut: 'before' | 'after') => {
      const store = new FailingStore({ late: true }).fail(cut, { nth })
      const add = (task: string) => ['write_todos', { items: [{ task }], replace: false }] as const
      const rounds: readonly ScriptedReply[] = [calls(add('a'), add('b')), calls(add('c')), 'done']
      const said = ({ messages }: ChatRequest) => messages.filter(({ role }) => role === 'assistant').length
      const model = scripted(Array.from({ length: 9 }, () => (request) => rounds[said(request)] as ScriptedReply))
      // Somebody looks at results, so each is written down before its call has settled.
      const policies = [says('Looks', { 'toolCall.after': { action: 'pass' } })]
      const runtime = () => createRuntime({ store, policies })
      const { status } = await runtime().settle(planner(model), user('go'), T)
      if (status === 'failed') {
        const { error } = await runtime()
          .continue(planner(model), 't')
          .catch((error) => ({ error }))
        if (error?.code === 'THREAD_UNKNOWN') await runtime().run(planner(model), user('go'), T)
      }
      const { state } = await runtime().stateAt(planner(model), 't')
      return { status, list: results(state?.messages ?? []).at(-1) }
    }
    for (const cut of ['before', 'after'] as const) {
      let nth = 1
      for (; ; nth++) {
        const { status, list } = await play(nth, cut)
        expect({ cut, nth, list }).toEqual({ cut, nth, list: pending('a', 'b', 'c') })
        if (status === 'completed') break
      }
      expect(nth).toBeGreaterThan(8)
    }
  })
})

describe('what a model writes', () => {
  const many = Array.from({ length: 101 }, (_, n) => ({ task: `task ${n}` }))
  it.each([
    { name: 'no list', args: { items: 'buy milk' }, says: '"items" must be a list' },
    { name: 'an item without a task', args: { items: [{ state: 'pending' }] }, says: 'items[0] needs a "task"' },
    { name: 'a task that is long', args: { items: [{ task: 'x'.repeat(401) }] }, says: '1 to 400 characters' },
    { name: 'a state that is none', args: { items: [{ task: 'a', state: 'done' }] }, says: 'states are: pending,' },
    { name: 'a member that is none', args: { items: [{ task: 'a', status: 'x' }] }, says: 'has no "status"' },
    { name: 'a text for a truth', args: { items: [], replace: 'no' }, says: '"replace" must be true or false' },
    { name: 'too many', args: { items: many }, says: '101 items, and 100 are the most' },
  ])('is refused, with what is wrong, where it is none: $name', async ({ args, says: why }) => {
    const model = strict([calls(['write_todos', args]), read, 'done'])
    const { state } = await createRuntime().run(planner(model), user('go'))
    const [refused, list] = results(state.messages)
    expect(refused).toMatch(/^Error: /)
    expect(refused).toContain(why)
    expect(list).toEqual({ items: [] })
  })

  it('is refused where the list would grow too long', async () => {
    const model = strict([write(many.slice(0, 60)), write(many.slice(0, 60), { replace: false }), read, 'done'])
    const { state } = await createRuntime().run(planner(model), user('go'))
    expect(results(state.messages)[1]).toMatch(/^Error: the list has 120 items/)
    expect(results(state.messages)[2].items).toHaveLength(60)
  })

  it('may be as long as it says, in any script', async () => {
    const full = Array.from({ length: 100 }, () => ({ task: '漢'.repeat(400), state: 'in_progress' }))
    const { state } = await createRuntime().run(planner(strict([write(full), 'done'])), user('go'), T)
    expect(results(state.messages)[0]).toEqual({ items: full })
  })
})

it('a misspelt option is refused', () => {
  expect(() => new TodoListMiddleware({ nmae: 'x' } as never)).toThrow(TypeError)
})
