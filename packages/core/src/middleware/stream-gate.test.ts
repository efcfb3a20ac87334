import { describe, expect, it } from 'vitest'
import {
  agentNode,
  type BlockAt,
  type BlockVerdict,
  blocks,
  type ChatModel,
  createRuntime,
  END,
  graph,
  type Middleware,
  messages,
  middleware,
  type ScriptedReply,
  START,
  scripted,
  state,
} from '../index.ts'

const Chat = state({ messages: messages() })
const ASKED = { messages: [{ role: 'user', content: 'tell me' }] } as const

function chat(own: readonly Middleware[], replies: readonly ScriptedReply[]) {
  const think = agentNode('think', Chat, { model: scripted(replies) })
  return graph('chat', Chat, { middleware: own }).edge(START, think).edge(think, END).check()
}

/** What a user’s stream shows, and what the conversation has at the end. */
async function shown(own: readonly Middleware[], replies: readonly ScriptedReply[]) {
  const story: string[] = []
  let said: string | undefined
  for await (const event of createRuntime().stream(chat(own, replies), ASKED)) {
    if (event.type === 'token') story.push(`${event.text.trim()}${event.substituted ? ' (substituted)' : ''}`)
    if (event.type === 'retracted') story.push(`${event.tokens} retracted`)
    if (event.type === 'run_end')
      said = (event.result as { messages?: { content: string }[] } | undefined)?.messages?.at(-1)?.content
  }
  return { story, said }
}

const judging = (characters: number, judge: (block: string, at: BlockAt) => BlockVerdict | Promise<BlockVerdict>) =>
  middleware({ name: 'judge', stream: blocks(characters, judge) })

describe('parts of a response, where own middleware judges it', () => {
  it('leave as they come, unless it says otherwise; what it puts in place changes none of them', async () => {
    const hides = middleware({ name: 'hides', afterModel: (ctx) => ctx.replace({ ...ctx.response, content: '…' }) })
    expect(await shown([hides], ['one two'])).toEqual({ story: ['one', 'two'], said: '…' })
  })
  it('are held with stream: "hold"; what leaves then is what it left, as one part, marked', async () => {
    const hold = { stream: 'hold' } as const
    const passes = middleware({ name: 'passes', ...hold, afterModel: () => undefined })
    expect(await shown([passes], ['one two'])).toEqual({ story: ['one', 'two'], said: 'one two' })
    const hides = middleware({
      name: 'hides',
      ...hold,
      afterModel: (ctx) => ctx.replace({ ...ctx.response, content: '…' }),
    })
    expect(await shown([hides], ['one two'])).toEqual({ story: ['… (substituted)'], said: '…' })
  })
  it('that have left are called back when a further next is made, or its outcome is another', async () => {
    const twice = middleware({
      name: 'twice',
      wrapModel: async (request, next) => {
        await next(request)
        return next(request)
      },
    })
    expect(await shown([twice], ['one two', 'three'])).toEqual({
      story: ['one', 'two', '2 retracted', 'three'],
      said: 'three',
    })
    const supplies = middleware({
      name: 'supplies',
      wrapModel: async (request, next) => {
        await next(request)
        return { ok: true, value: { content: 'mine', finish_reason: 'stop' } }
      },
    })
    expect(await shown([supplies], ['one two'])).toEqual({
      story: ['one', 'two', '2 retracted', 'mine (substituted)'],
      said: 'mine',
    })
  })
})

describe('blocks(n, judge)', () => {
  it('lets nothing leave that was not judged, and judges whole blocks only', async () => {
    const seen: [string, BlockAt][] = []
    const watch = judging(6, (block, at) => void seen.push([block, at]))
    const { story, said } = await shown([watch], ['one two three four'])
    expect(seen).toEqual([
      ['one two ', { before: '', last: false }],
      ['three ', { before: 'one two ', last: false }],
      ['four', { before: 'one two three ', last: true }],
    ])
    expect(story).toEqual(['one two', 'three', 'four'])
    expect(said).toBe('one two three four')
  })
  it('a block leaves as it was judged, and so it stands in the conversation', async () => {
    const redacts = judging(4, (block) => block.replace('two', '…'))
    expect(await shown([redacts], ['one two three'])).toEqual({ story: ['one', '…', 'three'], said: 'one … three' })
  })
  it('what is held begins the next block, so that nothing is missed for standing across two', async () => {
    const redacts = judging(1, (text, { last }) => {
      const clean = text.replace(/secret word/g, '…')
      const begun = last ? -1 : clean.lastIndexOf('secret')
      const at = begun < 0 ? clean.length : begun
      return { leaves: clean.slice(0, at), held: clean.slice(at) }
    })
    expect((await shown([redacts], ['the secret word is out'])).said).toBe('the … is out')
  })
  it('a judge that throws fails the call; what was to leave never does, and what has left is called back', async () => {
    const stops = judging(4, (block) => {
      if (block.includes('two')) throw new Error('that must not be said')
      return undefined
    })
    expect(await shown([stops], ['one two three'])).toEqual({ story: ['one', '1 retracted'], said: undefined })
  })
  it('judges a response that nobody streams as well', async () => {
    const redacts = judging(4, (block) => block.replace('two', '…'))
    const { state: end } = await createRuntime({ streams: false }).run(chat([redacts], ['one two']), ASKED)
    expect(end.messages.at(-1)?.content).toBe('one …')
  })
  it('several judges stand one after the other, in list order', async () => {
    const first = middleware({ name: 'first', stream: blocks(1, (block) => block.replace('one', 'two')) })
    const second = middleware({ name: 'second', stream: blocks(1, (block) => block.replace('two', 'three')) })
    expect((await shown([first, second], ['one '])).story).toEqual(['three'])
  })
  it('D2: a slow judge is asked once a block, not once a part', async () => {
    let asked = 0
    const slow = judging(250, () => void asked++)
    const { story } = await shown([slow], ['word '.repeat(200)])
    expect(asked).toBe(4)
    expect(story).toHaveLength(4)
  })
  it.each([0, 1.5, Number.NaN, -1])('needs a whole number of characters, not %s', (characters) => {
    expect(() => blocks(characters, () => undefined)).toThrow(RangeError)
  })
})

describe('a response that was supplied in place of a model’s', () => {
  const secret = { content: 'secret 123', finish_reason: 'stop' } as const
  const hides = judging(4, (block) => block.replace(/\d/g, '#'))

  it.each([
    { by: 'ctx.answer', own: middleware({ name: 'own', beforeModel: (ctx) => ctx.answer(secret) }), reply: 'unused' },
    { by: 'onModelError', own: middleware({ name: 'own', onModelError: () => secret }), reply: new Error('down') },
    {
      by: 'a wrap',
      own: middleware({
        name: 'own',
        wrapModel: async (_request, next) => {
          await next()
          return { ok: true, value: secret }
        },
      }),
      reply: '',
    },
  ])('by $by passes the judges of blocks, wherever they stand, before it leaves and is handed on', async (row) => {
    const shows = { story: ['secret ### (substituted)'], said: 'secret ###' }
    expect(await shown([hides, row.own], [row.reply])).toEqual(shows)
    expect(await shown([row.own, hides], [row.reply])).toEqual(shows)
  })

  it('passes them once, in list order', async () => {
    const own = middleware({ name: 'own', beforeModel: (ctx) => ctx.answer({ ...secret, content: 'x' }) })
    const marks = (name: string) => middleware({ name, stream: blocks(10, (block) => `${block}${name}`) })
    expect((await shown([marks('a'), marks('b'), own], [''])).said).toBe('xab')
  })

  it('fails the call where a judge throws, and nothing of it leaves', async () => {
    const own = middleware({ name: 'own', beforeModel: (ctx) => ctx.answer(secret) })
    const refuses = judging(4, () => {
      throw new Error('not that')
    })
    expect(await shown([refuses, own], [''])).toEqual({ story: [], said: undefined })
  })
})

describe('a trip that a wrap has given up', () => {
  /** Resolves when the other side has come so far; no time passes. */
  const gate = () => {
    let open = () => {}
    const opened = new Promise<void>((resolve) => {
      open = resolve
    })
    return { open, opened }
  }

  async function told(own: readonly Middleware[], stream: ChatModel['stream']) {
    const model: ChatModel = { model: 'm', chat: () => Promise.reject(new Error('it streams')), stream }
    const think = agentNode('think', Chat, { model })
    const made = graph('chat', Chat, { middleware: own }).edge(START, think).edge(think, END).check()
    const story: string[] = []
    for await (const event of createRuntime().stream(made, ASKED)) {
      if (event.type === 'token') story.push(`${event.text}${event.substituted ? ' (substituted)' : ''}`)
      if (event.type === 'retracted') story.push(`${event.tokens} retracted`)
    }
    return story
  }

  it('lets no block leave that its judge was still at', async () => {
    const [judging, second] = [gate(), gate()]
    const given = new AbortController()
    let trips = 0
    const judge = middleware({
      name: 'judge',
      stream: blocks(1, async (block) => {
        if (block !== 'old') return undefined
        judging.open()
        await second.opened
        return 'OLD'
      }),
    })
    const again = middleware({
      name: 'again',
      wrapModel: async (_request, next) => {
        const first = next(undefined, { signal: given.signal })
        await judging.opened
        given.abort(new Error('too slow'))
        await first
        return next()
      },
    })
    const story = await told([again, judge], async function* () {
      if (++trips === 1) {
        yield { content: 'old' }
        yield { content: 'older' }
        return
      }
      yield { content: 'new' }
      second.open()
      // The judge of the first trip is through before the rest comes.
      for (let turn = 0; turn < 20; turn++) await undefined
      yield { content: 'er' }
      yield { finish_reason: 'stop' }
    })
    expect(story).toEqual(['new', 'er'])
  })

  it('lets nothing leave after what is used in its place', async () => {
    const [left, settled] = [gate(), gate()]
    const gone = gate()
    const own = middleware({
      name: 'own',
      wrapModel: async (_request, next) => {
        next()
        await left.opened
        return { ok: true, value: { content: 'mine', finish_reason: 'stop' } }
      },
      afterNode: async () => {
        settled.open()
        await gone.opened
      },
    })
    const story = await told([own], async function* () {
      yield { content: 'one' }
      left.open()
      await settled.opened
      yield { content: 'two' }
      gone.open()
      yield { finish_reason: 'stop' }
    })
    expect(story).toEqual(['one', '1 retracted', 'mine (substituted)'])
  })
})
