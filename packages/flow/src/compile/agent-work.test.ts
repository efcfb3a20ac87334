import { describe, expect, it } from 'vitest'
import { agent, end, flowOf, llm, type Parts, start, text, tool, typed } from '../document.fixture.ts'
import { eventsOf, failureOf, outputsOf, type Playing, play, watching } from './run.fixture.ts'

const asking = (more: Parts, { inputs = [text('task')], outputs }: { inputs?: object[]; outputs?: object[] } = {}) =>
  flowOf(
    {
      start: start(...inputs),
      agent: { component_type: 'AgentNode', agent: agent(more), ...(outputs && { outputs }) },
      end: outputs ? end(...outputs) : { component_type: 'EndNode' },
    },
    ['start -> agent', 'agent -> end'],
  )
const call = (name: string, args: unknown = {}) => ({ tool_calls: [{ name, arguments: args }] })
const task: Pick<Playing, 'input'> = { input: { task: 'tidy up' } }

describe('an agent node', () => {
  it('asks with its system prompt filled, and all inputs as JSON from the user', async () => {
    const document = asking(
      {
        system_prompt: 'Serve {{name}} {{ n }}.',
        llm_config: llm({ default_generation_parameters: { temperature: 0 } }),
      },
      { inputs: [text('name'), typed('n', 'integer'), text('more')] },
    )
    const { requests } = await play(document, { model: ['ok'], input: { name: '{{n}}', n: 2, more: 'x' } })
    expect(requests).toEqual([
      {
        model: 'gpt',
        temperature: 0,
        messages: [
          { role: 'system', content: 'Serve {{n}} 2.' },
          { role: 'user', content: '{"name":"{{n}}","n":"2","more":"x"}' },
        ],
      },
    ])
  })

  it('is given what edges lead to it, and nothing else', async () => {
    const document = flowOf(
      {
        start: start(text('a'), text('b')),
        agent: { component_type: 'AgentNode', agent: agent() },
        end: end(text('result')),
      },
      ['start -> agent', 'agent -> end'],
      { data: ['start.a -> agent.task', 'agent.result -> end.result'] },
    )
    const { requests, state } = await play(document, { model: ['ok'], input: { a: '1', b: '2' } })
    expect(requests[0]?.messages[1]?.content).toBe('{"task":"1"}')
    expect(state).toEqual({ result: 'ok' })
  })

  it.each([
    { name: 'text', answer: 'All done.', gives: { result: 'All done.' } },
    { name: 'with the keys of a JSON object', answer: '{"a":1}', gives: { result: '{"a":1}', a: 1 } },
    { name: 'whose own `result` stands', answer: '{"result":2}', gives: { result: 2 } },
    { name: 'fenced', answer: '```json\n{"a":1}\n```', gives: { result: '```json\n{"a":1}\n```', a: 1 } },
    {
      name: 'JSON that no value can hold, which is text',
      answer: '{"__proto__":1}',
      gives: { result: '{"__proto__":1}' },
    },
    { name: 'a JSON list, which is text', answer: '[1]', gives: { result: '[1]' } },
  ])('that declares no outputs answers as `result`: $name', async ({ answer, gives }) => {
    expect(await outputsOf(asking({}), { model: [answer], ...task })).toEqual({ ...task.input, ...gives })
  })

  it.each([
    { name: 'one text is the answer', outputs: [text('a')], answer: 'yes', gives: { a: 'yes' } },
    { name: 'or the text under its title', outputs: [text('a')], answer: '{"a":"yes"}', gives: { a: 'yes' } },
    {
      name: 'others are read from JSON',
      outputs: [typed('n', 'integer'), text('t')],
      answer: '{"n":1,"t":"x"}',
      gives: { n: 1, t: 'x' },
    },
  ])('yields the outputs it declares: $name', async ({ outputs, answer, gives }) => {
    const { state, requests } = await play(asking({}, { outputs }), { model: [answer], ...task })
    expect(state).toEqual(gives)
    expect(requests[0]?.responseFormat === undefined).toBe(outputs.length === 1)
  })

  it('fails when its answer is not what was asked for', async () => {
    const document = asking({}, { outputs: [typed('n', 'integer')] })
    expect(await failureOf(document, { model: ['none'], ...task })).toBe(
      'the answer of agent "helper" must be JSON with "n", and is not.',
    )
  })
})

describe("an agent's tools", () => {
  const find = tool('find', {
    description: 'Finds things.',
    inputs: [text('what', { description: 'Which.' }), typed('most', 'integer', { default: 3, minimum: 1 })],
  })
  const answered = async (args: unknown) => {
    const { requests, ran } = await play(asking({ tools: [find] }), {
      tools: { find: () => 'found' },
      model: [call('find', args), 'done'],
      ...task,
    })
    return { said: requests[1]?.messages.at(-1)?.content, ran }
  }

  it('are offered with the description and the inputs of the document', async () => {
    const { requests } = await play(asking({ tools: [find, tool('other')] }), {
      tools: { find: () => 1, other: () => 2 },
      model: ['ok'],
      ...task,
    })
    expect(requests[0]?.tools).toEqual([
      {
        name: 'find',
        description: 'Finds things.',
        parameters: {
          type: 'object',
          properties: {
            what: { title: 'what', type: 'string', description: 'Which.' },
            most: { title: 'most', type: 'integer', default: 3, minimum: 1 },
          },
          required: ['what'],
          additionalProperties: false,
        },
      },
      { name: 'other', description: 'Runs other.', parameters: { type: 'object' } },
    ])
  })

  it('run with defaults filled in, and their result goes to the model', async () => {
    expect(await answered({ what: 'keys' })).toEqual({ said: 'found', ran: [['find', { what: 'keys', most: 3 }]] })
  })

  it.each([
    { name: 'numbers in text', args: { what: 'keys', most: '5' }, runs: { what: 'keys', most: 5 } },
    { name: 'numbers for text', args: { what: 7 }, runs: { what: '7', most: 3 } },
  ])('take what a model writes in another type: $name', async ({ args, runs }) => {
    expect((await answered(args)).ran).toEqual([['find', runs]])
  })

  it.each([
    { name: 'unknown', args: { what: 'x', why: 1 }, says: 'there is no argument "why"; arguments are: what, most' },
    { name: 'missing', args: {}, says: 'argument "what" has no value and no default.' },
    { name: 'of a wrong type', args: { what: 'x', most: 'many' }, says: 'argument "most" must be integer' },
    { name: 'out of its bounds', args: { what: 'x', most: 0 }, says: 'must be >= 1' },
    { name: 'no JSON (O1)', args: '{"what"', says: 'are no JSON' },
    { name: 'no object (O1)', args: '[1]', says: 'are no JSON object' },
  ])('do not run when an argument is $name, and the model is told', async ({ args, says }) => {
    const { said, ran } = await answered(args)
    expect(said).toMatch(/^Error: /)
    expect(said).toContain(says)
    expect(ran).toEqual([])
  })

  it('that fail are an answer to the model, and the agent goes on', async () => {
    const { requests, state } = await play(asking({ tools: [find] }), {
      tools: {
        find: () => {
          throw new Error('the drawer is locked')
        },
      },
      model: [call('find', { what: 'keys' }), 'sorry'],
      ...task,
    })
    expect(requests[1]?.messages.at(-1)?.content).toBe('Error: the drawer is locked')
    expect(state).toMatchObject({ result: 'sorry' })
  })

  it('reach policies as calls of the model, with the arguments that would run', async () => {
    const watch = watching(['toolCall.before'], { 'toolCall.before agent': { action: 'reject', reason: 'not today' } })
    const { requests, ran } = await play(asking({ tools: [find] }), {
      tools: { find: () => 'found' },
      model: [call('find', { what: 'keys' }), 'ok'],
      policies: [watch],
      ...task,
    })
    expect(watch.seen).toEqual([
      {
        at: 'toolCall.before',
        subject: expect.objectContaining({ nodeType: 'AgentNode', toolName: 'find', caller: 'model', source: 'code' }),
        input: { what: 'keys', most: 3 },
      },
    ])
    expect(ran).toEqual([])
    expect(requests[1]?.messages.at(-1)).toMatchObject({ role: 'tool', content: 'Refused: not today' })
  })

  it('of one name could not be told apart, so the document is refused', async () => {
    const twice = asking({ tools: [find, { ...tool('find'), id: 'another' }] })
    await expect(play(twice)).rejects.toMatchObject({ faults: [{ code: 'FLOW_TOOL_NAME' }] })
  })

  it('end the agent when its rounds are spent', async () => {
    const document = asking({ tools: [find] })
    const model = [1, 2, 3].map(() => call('find', { what: 'keys' }))
    expect(
      await failureOf(document, { tools: { find: () => 1 }, model, limits: { maxToolRounds: 2 }, ...task }),
    ).toMatch('the agent has spent its 2 rounds')
  })
})

describe("an agent's tokens", () => {
  it('leave as they come', async () => {
    const events = await eventsOf(asking({}), { model: ['one two'], ...task })
    expect(events.flatMap((event) => (event.type === 'token' ? [event.text] : []))).toEqual(['one ', 'two'])
  })
})
