import { describe, expect, it } from 'vitest'
import { agentGraph, asking, calls, contents, processes, user } from '../../../testing/agent.ts'
import { says } from '../../../testing/play.ts'
import { type ChatRequest, createRuntime, DynamicPromptMiddleware, middleware, scripted } from '../../index.ts'

//#region use
interface Shop {
  readonly customer: string
  readonly open: boolean
}

const prompt = new DynamicPromptMiddleware<unknown, Shop>(
  ({ context }) => `You help ${context.customer}. The shop is ${context.open ? 'open' : 'closed: take a note'}.`,
)
//#endregion

const HELLO = user('hello')
const context = { customer: 'Ada', open: true }
const sent = (request: ChatRequest | undefined) => contents(request?.messages ?? [])

describe('the system message of a model call', () => {
  it('is what the function makes of the context of the run', async () => {
    const model = scripted(['hi', 'hi'])
    const chat = agentGraph({ middleware: [prompt], model })
    await createRuntime().run(chat, HELLO, { context })
    await createRuntime().run(chat, HELLO, { context: { customer: 'Bob', open: false } })
    expect(model.requests.map((request) => sent(request)[0])).toEqual([
      'system: You help Ada. The shop is open.',
      'system: You help Bob. The shop is closed: take a note.',
    ])
  })

  it('is never stored', async () => {
    const { another } = processes()
    const chat = agentGraph({ middleware: [prompt], model: scripted(['hi']) })
    const { state } = await another().run(chat, HELLO, { context, thread: 't' })
    expect(contents(state.messages)).toEqual(['user: hello', 'assistant: hi'])
    expect(JSON.stringify(await another().history('t'))).not.toContain('You help Ada')
  })

  it.each([
    { name: 'takes the place of the one that is there', made: 'new', sends: ['system: new', 'user: hello'] },
    {
      name: 'may be made of it',
      made: (was?: string) => `${was} Be brief.`,
      sends: ['system: old Be brief.', 'user: hello'],
    },
    { name: 'stays as it is where nothing is made', made: undefined, sends: ['system: old', 'user: hello'] },
    { name: 'is taken away by an empty text', made: '', sends: ['user: hello'] },
  ])('$name', async ({ made, sends }) => {
    const model = scripted(['hi'])
    const own = new DynamicPromptMiddleware((_ctx, was) => (typeof made === 'function' ? made(was) : made))
    await createRuntime().run(agentGraph({ middleware: [own], model, system: 'old' }), HELLO)
    expect(sent(model.requests[0])).toEqual(sends)
  })

  it('is put first where there is none, and other messages stay where they are', async () => {
    const model = scripted(['hi'])
    const own = new DynamicPromptMiddleware(async () => 'new')
    const notes = middleware({
      name: 'notes',
      beforeModel: (ctx) => ctx.replace({ messages: [...ctx.request.messages, { role: 'system', content: 'a note' }] }),
    })
    await createRuntime().run(agentGraph({ middleware: [notes, own], model }), HELLO)
    expect(sent(model.requests[0])).toEqual(['system: new', 'user: hello', 'system: a note'])
  })

  it('is made anew for each round, of the state and the request as they are then', async () => {
    const model = scripted([calls(['ask', { text: 'a' }]), 'done'])
    const own = new DynamicPromptMiddleware(
      ({ request, round }) => `Round ${round}, ${request.messages.length} so far.`,
    )
    const { another } = processes()
    const chat = agentGraph({ middleware: [own], model, tools: [asking()] })
    await another().settle(chat, HELLO, { thread: 't' })
    await another().resume(chat, 't', 'yes')
    expect(model.requests.map((request) => sent(request)[0])).toEqual([
      'system: Round 1, 1 so far.',
      'system: Round 2, 3 so far.',
    ])
  })

  it('A2: is seen by the policies as it is sent', async () => {
    const gate = says('Gate', { 'modelCall.before': { action: 'proceed' } })
    await createRuntime({ policies: [gate] }).run(
      agentGraph({ middleware: [prompt], model: scripted(['hi']) }),
      HELLO,
      { context },
    )
    expect(gate.asked[0]?.input).toMatchObject({ messages: [{ content: 'You help Ada. The shop is open.' }, {}] })
  })
})

describe('what is no system message', () => {
  it('ends the run when the function makes it', async () => {
    const own = new DynamicPromptMiddleware((() => 7) as never)
    const { error } = await createRuntime().settle(agentGraph({ middleware: [own], model: scripted(['hi']) }), HELLO)
    expect(error).toMatchObject({
      code: 'MIDDLEWARE_FAILED',
      message: expect.stringContaining('its function made a number; a system message is a text'),
    })
  })

  it('is refused when it is no function', () => {
    expect(() => new DynamicPromptMiddleware('You help.' as never)).toThrow(
      'the prompt must be a function, not "You help."',
    )
    expect(() => new DynamicPromptMiddleware(() => '', { nam: 'x' } as never)).toThrow('has no "nam"')
  })
})
