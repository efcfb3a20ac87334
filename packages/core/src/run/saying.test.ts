import { describe, expect, it } from 'vitest'
import { Clock, open, quiet } from '../../testing/clock.ts'
import {
  type ChatModel,
  createRuntime,
  END,
  graph,
  MemoryStore,
  messages,
  modelNode,
  node,
  type Policy,
  policy,
  START,
  state,
} from '../index.ts'

const S = state({ messages: messages() })

/** A model that says a word whenever it is told to. */
function slowModel(words: readonly string[]) {
  const gates = words.map(() => open<void>())
  const model: ChatModel = {
    model: 'slow',
    chat: async () => ({ content: words.join(''), finish_reason: 'stop' }),
    async *stream() {
      for (const [i, word] of words.entries()) {
        await gates[i]?.promise
        yield { content: word }
      }
      yield { finish_reason: 'stop' }
    },
  }
  const say = async (i: number) => {
    gates[i]?.resolve()
    await quiet()
  }
  return { model, say }
}

/** A streamed run on a thread, and somebody else who reads the thread meanwhile. */
function streamed(words: readonly string[], policies: readonly Policy[] = [], question = 'well?') {
  const { model, say } = slowModel(words)
  const talk = modelNode('talk', S, { model })
  const g = graph('g', S).edge(START, talk).edge(talk, END).check()
  const [clock, store] = [new Clock(), new MemoryStore()]
  const asked = { messages: [{ role: 'user' as const, content: question }] }
  const stream = createRuntime({ store, policies, platform: clock }).stream(g, asked, { thread: 't', mode: 'tokens' })
  const read = async () => {
    for await (const _ of stream);
  }
  const saying = async () => (await createRuntime({ store }).stateAt(g, 't')).saying
  return { say, clock, store, saying, ended: read() }
}

describe('a response that is coming in', () => {
  it('is kept a few times a second, for who reads the thread, and gone when it has settled', async () => {
    const { say, clock, saying, ended } = streamed(['One', ' two', ' three', ' four'])
    await say(0)
    expect(await saying()).toEqual([])
    await clock.pass(100)
    await say(1)
    expect(await saying()).toEqual([{ within: ['talk'], text: 'One two' }])
    await say(2)
    expect(await saying()).toEqual([{ within: ['talk'], text: 'One two' }])
    await clock.pass(100)
    await say(3)
    await ended
    expect(await saying()).toEqual([])
  })

  it('is kept without the request, however long that is', async () => {
    const { say, clock, store, ended } = streamed(['One', ' two', ' three', ' four'], [], 'why? '.repeat(20_000))
    for (const i of [0, 1, 2, 3]) {
      await say(i)
      const beside = store.load({ thread: 't', branch: 'main' })?.beside ?? []
      expect(JSON.stringify(beside).length).toBeLessThan(1_000)
      await clock.pass(100)
    }
    await ended
  })

  it('is gone, too, when the call was cut off and is made again where nobody listens', async () => {
    const { model, say } = slowModel(['One', ' two'])
    const talk = node('talk', S, async (_s, ctx) => {
      await ctx.callModel(model, { messages: [] })
      await ctx.ask('q', 'well?')
    })
    const g = graph('g', S).edge(START, talk).edge(talk, END).check()
    const [platform, store, cut] = [new Clock(), new MemoryStore(), new AbortController()]
    const runtime = createRuntime({ store, platform })
    const stream = runtime.stream(g, {}, { thread: 't', mode: 'tokens', signal: cut.signal })
    const read = (async () => {
      for await (const _ of stream);
    })()
    await quiet()
    await platform.pass(100)
    await say(0)
    cut.abort()
    await read.catch(() => undefined)
    expect((await runtime.stateAt(g, 't')).saying).toEqual([{ within: ['talk'], text: 'One' }])
    expect((await runtime.continue(g, 't')).status).toBe('paused')
    expect((await runtime.stateAt(g, 't')).saying).toEqual([])
  })

  it('is not kept while a policy holds it back', async () => {
    const judge = policy({ name: 'Judge', seams: { modelCall: { after: () => ({ action: 'pass' }) } } })
    const { say, clock, saying, ended } = streamed(['One', ' two'], [judge])
    await say(0)
    await clock.pass(100)
    expect(await saying()).toEqual([])
    await say(1)
    await ended
  })
})
