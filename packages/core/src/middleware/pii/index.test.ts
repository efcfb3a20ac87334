import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { agentGraph, calls, contents, strict, Talk, user } from '../../../testing/agent.ts'
import { Clock } from '../../../testing/clock.ts'
import {
  agentNode,
  type ChatRequest,
  createRuntime,
  END,
  graph,
  MemoryStore,
  Middleware,
  node,
  PiiMiddleware,
  type PiiOptions,
  START,
  scripted,
  type ToolMiddlewareContext,
  tool,
} from '../../index.ts'

const CARD = '4111 1111 1111 1111'
const MAIL = 'ada@example.org'

/** A tool that says what it is told to. */
const look = (result: unknown = MAIL, ran: unknown[] = []) =>
  tool('look', {
    description: 'Looks somebody up.',
    input: z.object({ who: z.string() }),
    run: (args) => {
      ran.push(args)
      return result
    },
  })

/** What a model was sent, in words. */
const sent = ({ requests }: { readonly requests: readonly ChatRequest[] }) =>
  requests.map(({ messages }) => contents(messages))

/** One answer of a model in a run with the middleware, and what it was sent. */
async function answered(options: PiiOptions, asked: string, answer: string) {
  const model = strict([answer])
  const agent = agentGraph({ model, middleware: [new PiiMiddleware(options)] })
  const { state } = await createRuntime({ platform: new Clock() }).run(agent, user(asked))
  return { sent: sent(model)[0], said: contents(state.messages) }
}

describe('personal data', () => {
  it('is taken out of what a model is sent, of what it says and of what tools return', async () => {
    const model = strict([calls(['look', { who: 'Ada' }]), `It is ${MAIL}.`])
    //#region redact
    const agent = agentNode('agent', Talk, { model, tools: [look()] })
    const middleware = [new PiiMiddleware()]
    const support = graph('support', Talk, { middleware }).edge(START, agent).edge(agent, END).check()
    //#endregion
    const { state } = await createRuntime().run(support, user(`My card is ${CARD}.`))
    expect(sent(model)[1]).toEqual(['user: My card is [REDACTED_CARD].', 'assistant: ', 'tool: [REDACTED_EMAIL]'])
    expect(contents(state.messages)).toEqual([
      `user: My card is ${CARD}.`,
      'assistant: ',
      'tool: [REDACTED_EMAIL]',
      'assistant: It is [REDACTED_EMAIL].',
    ])
  })

  it.each([
    { place: 'input', where: { output: false, toolResults: false }, clean: ['sent'] },
    { place: 'output', where: { input: false, toolResults: false }, clean: ['said'] },
    { place: 'toolResults', where: { input: false, output: false }, clean: ['result'] },
    {
      place: 'toolArguments',
      where: { input: false, output: false, toolResults: false, toolArguments: true },
      clean: ['ran'],
    },
  ])('is looked for where it says only: $place', async ({ where, clean }) => {
    const ran: unknown[] = []
    const model = strict([calls(['look', { who: MAIL }]), MAIL])
    const agent = agentGraph({ model, tools: [look(MAIL, ran)], middleware: [new PiiMiddleware({ where })] })
    const { state } = await createRuntime().run(agent, user(MAIL))
    const places = { sent: sent(model)[0], ran, result: contents(state.messages)[2], said: contents(state.messages)[3] }
    const found = Object.entries(places).filter(([, value]) => JSON.stringify(value).includes('[REDACTED_EMAIL]'))
    expect(found.map(([place]) => place)).toEqual(clean)
  })

  it('a hook that is switched off is none: nobody is told that it was consulted', () => {
    const where = { input: false, output: false }
    const g = agentGraph({ model: scripted([]), middleware: [new PiiMiddleware({ where })] })
    expect(createRuntime().explain(g)).toBe('toolCall.after      PiiMiddleware.afterTool')
  })

  it('is not taken out of the system prompt, which is the author’s own', async () => {
    const model = strict(['ok'])
    const agent = agentGraph({ model, system: `Mail ${MAIL}.`, middleware: [new PiiMiddleware()] })
    await createRuntime().run(agent, user('hello'))
    expect(sent(model)[0]?.[0]).toBe(`system: Mail ${MAIL}.`)
  })

  it('is found in results that are structured: in texts, numbers and names, however deep', async () => {
    const result = {
      [MAIL]: [{ note: `card ${CARD}`, number: 4111111111111111, ok: true, none: null }],
      'bo@example.org': 2,
    }
    const model = strict([calls(['look', { who: 'x' }]), 'ok'])
    const agent = agentGraph({ model, tools: [look(result)], middleware: [new PiiMiddleware()] })
    await createRuntime().run(agent, user('look'))
    expect(JSON.parse(model.requests[1]?.messages[2]?.content ?? '')).toEqual({
      '[REDACTED_EMAIL]': [{ note: 'card [REDACTED_CARD]', number: '[REDACTED_CARD]', ok: true, none: null }],
      '[REDACTED_EMAIL] 2': 2,
    })
  })
})

describe('what becomes of a finding', () => {
  it.each([
    { strategy: 'redact', kind: 'card', text: CARD, left: '[REDACTED_CARD]' },
    { strategy: 'mask', kind: 'card', text: CARD, left: '***1111' },
    { strategy: 'mask', kind: 'email', text: MAIL, left: '***@example.org' },
    { strategy: 'mask', kind: 'iban', text: 'DE89370400440532013000', left: '***3000' },
    { strategy: 'mask', kind: 'ip', text: '192.0.2.1', left: '192.***' },
    { strategy: 'mask', kind: 'ip', text: '2001:db8::1', left: '2001:***' },
    { strategy: 'mask', kind: 'phone', text: '+49 30 901820', left: '***1820' },
    { strategy: 'mask', kind: 'key', text: 'AKIAIOSFODNN7EXAMPLE', left: '***' },
    { strategy: 'hash', kind: 'email', text: MAIL, left: '<email:ecc79c564a14>' },
  ] as const)('$strategy leaves of $kind $left', async ({ strategy, text, left }) => {
    const { sent: [request] = [] } = await answered({ strategy, salt: 'pepper' }, `it is ${text}, yes`, 'ok')
    expect(request).toBe(`user: it is ${left}, yes`)
  })

  it('may differ from kind to kind; what is not named is redacted', async () => {
    //#region by-kind
    const pii = { strategy: { card: 'mask', key: 'block' } } as const
    //#endregion
    expect((await answered(pii, `${CARD} ${MAIL}`, 'ok')).sent).toEqual(['user: ***1111 [REDACTED_EMAIL]'])
    await expect(answered(pii, 'AKIAIOSFODNN7EXAMPLE', 'ok')).rejects.toThrow('holds key')
  })

  it('block: the request is not sent, and the error names the kinds and nothing of the values', async () => {
    const model = strict([])
    const agent = agentGraph({ model, middleware: [new PiiMiddleware({ strategy: 'block' })] })
    const { error } = await createRuntime().settle(agent, user(`${CARD} and ${MAIL}`))
    expect(error).toMatchObject({ code: 'REFUSED', reason: 'the request holds card, email, which may not be sent' })
    expect(JSON.stringify({ ...(error as Error), message: (error as Error).message })).not.toMatch(/4111|ada/)
    expect(model.requests).toEqual([])
  })

  it('block: a response is not used', async () => {
    const running = answered({ strategy: 'block' }, 'hello', MAIL)
    await expect(running).rejects.toMatchObject({ code: 'FAILED_BY_MIDDLEWARE' })
  })

  it('block: a result is withheld, and the model is told so and goes on', async () => {
    const model = strict([calls(['look', { who: 'Ada' }]), 'I may not say.'])
    const agent = agentGraph({ model, tools: [look()], middleware: [new PiiMiddleware({ strategy: 'block' })] })
    const { state } = await createRuntime().run(agent, user('who is Ada?'))
    expect(contents(state.messages).slice(2)).toEqual([
      'tool: Refused: the result holds email, which may not be shown',
      'assistant: I may not say.',
    ])
  })

  it('hash: the same value is the same word, another value or salt another', async () => {
    const hash = async (text: string, salt: string) =>
      (await answered({ strategy: 'hash', salt }, text, 'ok')).sent?.[0]
    expect(await hash(MAIL, 'a')).toBe(await hash(MAIL, 'a'))
    expect(await hash(MAIL, 'a')).not.toBe(await hash(MAIL, 'b'))
    expect(await hash(MAIL, 'a')).not.toBe(await hash('bo@example.org', 'a'))
  })

  it('where two detectors find one place, the strictest strategy decides', async () => {
    const detectors = [{ name: 'domain', find: (text: string) => [...spansOf(text, /example\.org/g)] }]
    const { sent: request } = await answered({ detectors, strategy: { email: 'mask', domain: 'redact' } }, MAIL, 'ok')
    expect(request).toEqual(['user: [REDACTED_DOMAIN]'])
  })

  it.each(['redact', 'mask', 'hash'] as const)('%s leaves nothing that is found again', async (strategy) => {
    const value = fc.constantFrom(CARD, MAIL, 'DE89370400440532013000', '192.0.2.1', '::1', '+49 30 901820')
    const texts = fc.array(fc.oneof(value, fc.string(), fc.stringMatching(/^[a-z]{1,9}$/)), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(texts, async (parts) => {
        const once = await answered({ strategy, salt: 's' }, parts.join(' ; '), 'ok')
        const [first = ''] = once.sent ?? []
        const twice = await answered({ strategy, salt: 's' }, first.slice('user: '.length), 'ok')
        expect(twice.sent).toEqual(once.sent)
      }),
      { numRuns: 50 },
    )
  })
})

function* spansOf(text: string, pattern: RegExp) {
  for (const { 0: value, index } of text.matchAll(pattern)) yield { start: index, end: index + value.length }
}

describe('detectors of your own', () => {
  //#region detector
  const ticket = {
    name: 'ticket',
    *find(text: string) {
      for (const { 0: id, index } of text.matchAll(/\bT-\d{6}\b/g)) yield { start: index, end: index + id.length }
    },
  }
  //#endregion

  it('stand beside the built-in ones, or alone', async () => {
    const text = `T-123456 ${MAIL}`
    expect((await answered({ detectors: [ticket] }, text, 'ok')).sent).toEqual([
      'user: [REDACTED_TICKET] [REDACTED_EMAIL]',
    ])
    expect((await answered({ kinds: [], detectors: [ticket] }, text, 'ok')).sent).toEqual([
      `user: [REDACTED_TICKET] ${MAIL}`,
    ])
  })

  it('that find a place that is not there fail the run, with their name', async () => {
    const off = { name: 'off', find: () => [{ start: 2, end: 999 }] }
    await expect(answered({ detectors: [off] }, 'hello', 'ok')).rejects.toThrow(
      'detector "off" found 2 to 999 in a text of 5 characters',
    )
  })
})

describe('a streamed response', () => {
  async function shown(options: PiiOptions, answer: string) {
    const agent = agentGraph({ model: scripted([answer]), middleware: [new PiiMiddleware(options)] })
    const parts: string[] = []
    let end = ''
    for await (const event of createRuntime().stream(agent, user('hello'))) {
      if (event.type === 'token') parts.push(event.text)
      if (event.type === 'run_end') end = event.status
    }
    return { parts, end }
  }

  it('leaves once it was judged as a whole', async () => {
    expect((await shown({}, `card ${CARD} ok`)).parts).toEqual(['card [REDACTED_CARD] ok'])
    expect((await shown({}, 'nothing here')).parts).toEqual(['nothing ', 'here'])
  })

  it('of which nothing is used leaves nothing', async () => {
    expect(await shown({ strategy: 'block' }, `card ${CARD} ok`)).toEqual({ parts: [], end: 'failed' })
  })

  it('leaves as it comes where output is not judged', async () => {
    expect((await shown({ where: { output: false } }, `to ${MAIL}`)).parts).toEqual(['to ', MAIL])
  })

  const blocks = { stream: { characters: 1 } } as const

  it('may leave in blocks, and nothing that is found stands in any of them, wherever it stands', async () => {
    const long = 'word '.repeat(300)
    for (let shift = 0; shift < 40; shift += 3) {
      const { parts } = await shown(blocks, `${long}${'x'.repeat(shift)} ${CARD} ${MAIL} ${long}`)
      expect(parts.length).toBeGreaterThan(10)
      expect(parts.join('')).toBe(`${long}${'x'.repeat(shift)} [REDACTED_CARD] [REDACTED_EMAIL] ${long}`)
    }
  })

  it('in blocks is what it would be as a whole', async () => {
    const key = '-----BEGIN RSA PRIVATE KEY-----\n'.concat('MIIB '.repeat(400), '\n-----END RSA PRIVATE KEY-----')
    const value = fc.constantFrom(
      CARD,
      MAIL,
      '192.0.2.1',
      '(415) 555-2671',
      key,
      `eyJ${'a'.repeat(900)}.eyJ${'b'.repeat(900)}.c`,
    )
    const texts = fc.array(fc.oneof(value, fc.lorem({ maxCount: 80 }), fc.string()), { minLength: 1, maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(texts, async (parts) => {
        const text = parts.join(' , ')
        const whole = await shown({}, text)
        expect((await shown(blocks, text)).parts.join('')).toBe(whole.parts.join(''))
      }),
      { numRuns: 40 },
    )
  })

  it('in blocks of which one may not be used ends there, and what has left is called back', async () => {
    const { parts, end } = await shown({ ...blocks, strategy: 'block' }, `${'word '.repeat(300)}${CARD} ok`)
    expect(end).toBe('failed')
    expect(parts.join('')).not.toContain('4111')
  })
})

describe('over a pause', () => {
  class Gate extends Middleware {
    override beforeTool(ctx: ToolMiddlewareContext) {
      return ctx.answered === undefined ? ctx.suspend({ question: 'may it?' }) : undefined
    }
  }

  it('another process sends the same to the model, and what a tool returned raw stands nowhere', async () => {
    const store = new MemoryStore()
    const model = strict([calls(['look', { who: 'Ada' }], ['look', { who: 'Bo' }]), 'done'])
    const parts = () => ({ model, tools: [look()], middleware: [new PiiMiddleware(), new Gate()] })
    const { asks } = await createRuntime({ store }).run(agentGraph(parts()), user(CARD), { thread: 't' })
    expect(asks).toHaveLength(2)
    const runtime = createRuntime({ store })
    await runtime.resume(agentGraph(parts()), 't', new Map(asks.map(({ key }) => [key, true])))
    expect(sent(model)[1]).toEqual([
      'user: [REDACTED_CARD]',
      'assistant: ',
      'tool: [REDACTED_EMAIL]',
      'tool: [REDACTED_EMAIL]',
    ])
    expect(JSON.stringify(await runtime.history('t'))).not.toContain(MAIL)
  })
})

describe('a conversation in which nothing is found', () => {
  it('is handed on as it is: the very same request', async () => {
    const model = scripted(['ok'])
    const seen: unknown[] = []
    const asked = user('nothing')
    const work = node('work', Talk, async (s, ctx) => {
      await ctx.callModel(model, { messages: s.messages })
      seen.push(s.messages)
    })
    const g = graph('g', Talk, { middleware: [new PiiMiddleware()] })
      .edge(START, work)
      .edge(work, END)
      .check()
    await createRuntime().run(g, asked)
    expect(model.requests[0]?.messages).toBe(seen[0])
  })
})

describe('the options', () => {
  it.each([
    { name: 'a kind', options: { kinds: ['ssn'] }, says: 'kind "ssn" is none; kinds are: key, iban' },
    { name: 'a strategy', options: { strategy: 'drop' }, says: '"drop" is no strategy' },
    {
      name: 'a strategy for what is not looked for',
      options: { kinds: ['ip'], strategy: { card: 'mask' } },
      says: 'names "card"',
    },
    { name: 'a place', options: { where: { inputs: true } }, says: 'has no "inputs"' },
    {
      name: 'no place',
      options: { where: { input: false, output: false, toolResults: false } },
      says: 'nothing is switched on',
    },
    { name: 'nothing to look for', options: { kinds: [] }, says: 'nothing to look for' },
    { name: 'a digest without a salt', options: { strategy: 'hash' }, says: 'needs a salt' },
    {
      name: 'digests in blocks',
      options: { strategy: 'hash', salt: 's', stream: { characters: 9 } },
      says: 'needs stream: "hold"',
    },
    { name: 'blocks of nothing', options: { stream: { characters: 0 } }, says: 'stream.characters is 0' },
    {
      name: 'a detector’s name',
      options: { detectors: [{ name: 'My Own', find: () => [] }] },
      says: '"My Own" is no name',
    },
    { name: 'a name twice', options: { detectors: [{ name: 'ip', find: () => [] }] }, says: 'a detector "ip" already' },
    { name: 'another option', options: { types: [] }, says: 'has no "types"' },
  ])('are refused where they are none: $name', ({ options, says }) => {
    expect(() => new PiiMiddleware(options as PiiOptions)).toThrow(says)
  })
})
