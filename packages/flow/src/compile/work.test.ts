import type { JsonObject } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { around, end, flowOf, llm, type Parts, start, text, tool, typed } from '../document.fixture.ts'
import { eventsOf, failureOf, outputsOf, play } from './run.fixture.ts'

describe('a branching node', () => {
  const document = (input: object, mapping: Parts) =>
    flowOf(
      {
        start: start(typed('v', undefined)),
        choose: { component_type: 'BranchingNode', inputs: [input], mapping },
        yes: { component_type: 'ToolNode', tool: tool('mark', { inputs: [] }) },
        end: { component_type: 'EndNode' },
        other: { component_type: 'EndNode' },
      },
      ['start -> choose', 'choose[yes] -> yes', 'choose[default] -> other', 'yes -> end'],
    )

  it.each([
    { name: 'text', value: 'on', key: 'on' },
    { name: 'a number, as text', value: 5, key: '5' },
    { name: 'a number behind the point, as text', value: 1.5, key: '1.5' },
    { name: 'true, as text', value: true, key: 'true' },
    { name: 'false, as text', value: false, key: 'false' },
    { name: 'null, as nothing', value: null, key: '' },
    { name: 'a list, as JSON', value: [1], key: '[1]' },
  ])('looks up $name', async ({ value, key }) => {
    const playing = { tools: { mark: () => ({}) }, input: { v: value } as JsonObject }
    expect((await play(document(typed('v', undefined), { [key]: 'yes' }), playing)).ran).toHaveLength(1)
    expect((await play(document(text('v'), { [key]: 'yes' }), playing)).ran).toHaveLength(1)
  })

  it('takes branch default for any other input, also one named like what every object has', async () => {
    for (const v of ['off', 'constructor', '__proto__']) {
      const playing = { tools: { mark: () => ({}) }, input: { v } }
      expect((await play(document(text('v'), { on: 'yes' }), playing)).ran).toEqual([])
    }
  })

  it('fails the run when its document has no edge for the branch', async () => {
    const undrawn = flowOf(
      {
        start: start(text('branching_mapping_key')),
        choose: { component_type: 'BranchingNode', mapping: { on: 'yes' } },
        end: end(),
      },
      ['start -> choose', 'choose[yes] -> end'],
    )
    expect((await play(undrawn, { input: { branching_mapping_key: 'on' } })).status).toBe('completed')
    expect(await failureOf(undrawn, { input: { branching_mapping_key: 'off' } })).toBe(
      'node "choose": the run cannot go on: it chose branch "default", and every edge is labelled (yes).',
    )
  })
})

describe("a tool node's outputs", () => {
  const outputsFor = (outputs: readonly object[] | undefined, result: unknown, node: Parts = {}) =>
    outputsOf(around({ component_type: 'ToolNode', tool: tool('make', { inputs: [], outputs }), ...node }, OPEN_END), {
      tools: { make: () => result },
    })
  const OPEN_END = { data: [] }

  it.each([
    { name: 'one is the result itself', outputs: [text('a')], result: 'x', gives: { a: 'x' } },
    { name: 'or what stands under its title', outputs: [text('a')], result: { a: 'x', b: 1 }, gives: { a: 'x' } },
    { name: 'or the whole object', outputs: [typed('a', 'object')], result: { b: 1 }, gives: { a: { b: 1 } } },
    { name: 'or its default', outputs: [text('a', { default: 'd' })], result: {}, gives: { a: 'd' } },
    {
      name: 'several are the keys of an object',
      outputs: [text('a'), text('b')],
      result: { a: 1, b: 2, c: 3 },
      gives: { a: '1', b: '2' },
    },
    {
      name: 'a key that is missing takes its default',
      outputs: [text('a'), text('b', { default: 'd' })],
      result: { a: '1' },
      gives: { a: '1', b: 'd' },
    },
    {
      name: 'text is read as JSON where no text is wanted',
      outputs: [typed('a', 'array')],
      result: '[1,2]',
      gives: { a: [1, 2] },
    },
    { name: 'none are none', outputs: [], result: { a: 1 }, gives: {} },
    {
      name: 'undeclared, the keys of an object',
      outputs: undefined,
      result: { a: 1, b: [2] },
      gives: { a: 1, b: [2] },
    },
    { name: 'undeclared, else `result`', outputs: undefined, result: [1], gives: { result: [1] } },
    {
      name: 'a key may be named like a part of a graph',
      outputs: undefined,
      result: { run: 1, goto: 2, name: 3 },
      gives: { run: 1, goto: 2, name: 3 },
    },
  ])('$name', async ({ outputs, result, gives }) => {
    expect(await outputsFor(outputs, result)).toEqual(gives)
  })

  it('are those the node declares, where its tool leaves that to the machine', async () => {
    expect(await outputsFor(undefined, 5, { outputs: [text('answer')] })).toEqual({ answer: '5' })
  })

  it('that are missing fail the node', async () => {
    const document = around({
      component_type: 'ToolNode',
      tool: tool('make', { inputs: [], outputs: [text('a'), text('b')] }),
    })
    const events = await eventsOf(document, { tools: { make: () => 'neither' } })
    expect(events.find(({ type }) => type === 'node_error')).toMatchObject({
      nodeName: 'node',
      error: { code: 'FLOW_VALUE_MISSING', message: 'output "a" of node "node" has no value and no default.' },
    })
  })

  it("are nothing when the tool fails: the node fails with the tool's own error", async () => {
    const broken = new Error('the service is down')
    const document = around({ component_type: 'ToolNode', tool: tool('make') })
    const { error } = await play(document, {
      tools: {
        make: () => {
          throw broken
        },
      },
    })
    expect(error).toBe(broken)
  })
})

describe('an LLM node', () => {
  const document = (prompt: string, inputs: readonly object[], outputs?: readonly object[]) =>
    flowOf(
      {
        start: start(...inputs),
        ask: {
          component_type: 'LlmNode',
          llm_config: llm({ default_generation_parameters: { temperature: 0.5, max_tokens: 9, top_p: null } }),
          prompt_template: prompt,
          ...(outputs && { outputs }),
        },
        end: end(...(outputs ?? [text('generated_text')])),
      },
      ['start -> ask', 'ask -> end'],
    )

  it('asks once, with its prompt as the user, its placeholders filled and the parameters of its configuration', async () => {
    const { state, requests } = await play(document('Is {{a}} {{ b }}?', [text('a'), typed('b', 'integer')]), {
      model: ['yes'],
      input: { a: 'it', b: 7 },
    })
    expect(state).toEqual({ generated_text: 'yes' })
    expect(requests).toEqual([
      { model: 'gpt', messages: [{ role: 'user', content: 'Is it 7?' }], temperature: 0.5, maxTokens: 9 },
    ])
  })

  it('never reads as a template what came into one', async () => {
    const input = { a: '{{b}} and $& and {{', b: 'secret' }
    const { requests } = await play(document('{{a}}', [text('a'), text('b')]), { model: ['ok'], input })
    expect(requests[0]?.messages[0]?.content).toBe('{{b}} and $& and {{')
  })

  it('fails without asking when a placeholder has no value', async () => {
    const unfed = flowOf(
      {
        start: { component_type: 'StartNode' },
        ask: { ...(document('{{a}}', []).$referenced_components.ask as Parts) } as never,
        end: end(),
      },
      ['start -> ask', 'ask -> end'],
    )
    const { error, requests } = await play(unfed, { model: ['ok'] })
    expect(error).toMatchObject({ message: 'input "a" of node "ask" has no value and no default.' })
    expect(requests).toEqual([])
  })

  it('takes the answer as it is for one text, JSON or not', async () => {
    const answer = '{"generated_text":"x"}'
    expect(await outputsOf(document('hi', []), { model: [answer] })).toEqual({ generated_text: answer })
  })

  it('tells the model of outputs that are more than one text, under a name that providers accept', async () => {
    const outputs = [typed('n', 'integer', { description: 'How many.' }), text('why', { default: '' })]
    const structured = document('hi', [], outputs)
    const named = structured.$referenced_components as Record<string, Parts>
    named.ask = { ...named.ask, name: `How many, "exactly"? ${'x'.repeat(80)}` }
    const { requests, state } = await play(structured, { model: ['{"n":2}'] })
    expect(state).toEqual({ n: 2, why: '' })
    expect(requests[0]?.responseFormat).toEqual({
      type: 'json_schema',
      name: `How_many___exactly___${'x'.repeat(43)}`,
      schema: {
        type: 'object',
        properties: {
          n: { title: 'n', type: 'integer', description: 'How many.' },
          why: { title: 'why', type: 'string', default: '' },
        },
        required: ['n'],
        additionalProperties: false,
      },
    })
  })

  const n = typed('n', 'integer')
  const person = typed('person', 'object')
  it.each([
    { name: 'a value alone', outputs: [n], answer: '5', gives: { n: 5 } },
    { name: 'under its title', outputs: [n], answer: '{"n":5}', gives: { n: 5 } },
    { name: 'text in JSON that is a number', outputs: [n], answer: '{"n":"5"}', gives: { n: 5 } },
    { name: 'fenced', outputs: [n], answer: '```json\n{"n":5}\n```', gives: { n: 5 } },
    { name: 'fenced without a word', outputs: [n], answer: ' ```\n{"n":5}\n```\n', gives: { n: 5 } },
    { name: 'a list', outputs: [typed('l', 'array')], answer: '[1]', gives: { l: [1] } },
    { name: 'an object alone', outputs: [person], answer: '{"age":3}', gives: { person: { age: 3 } } },
    {
      name: 'an object under its title',
      outputs: [person],
      answer: '{"person":{"age":3}}',
      gives: { person: { age: 3 } },
    },
    { name: 'several', outputs: [n, text('t')], answer: '{"n":1,"t":"x","more":1}', gives: { n: 1, t: 'x' } },
    {
      name: 'a default for what is left out',
      outputs: [typed('n', 'integer', { default: 1 })],
      answer: '{}',
      gives: { n: 1 },
    },
    {
      name: 'text, where text is one of the types',
      outputs: [typed('v', ['integer', 'string'])],
      answer: 'none',
      gives: { v: 'none' },
    },
  ])('reads outputs from the answer: $name', async ({ outputs, answer, gives }) => {
    expect(await outputsOf(document('hi', [], outputs), { model: [answer] })).toEqual(gives)
  })

  it.each([
    {
      name: 'no JSON',
      outputs: [n],
      answer: 'about five',
      says: 'the answer of node "ask" must be JSON with "n", and is not.',
    },
    {
      name: 'no object',
      outputs: [n, text('t')],
      answer: '[1]',
      says: 'the answer of node "ask" must be JSON with "n", "t", and is not.',
    },
    { name: 'JSON inside of prose', outputs: [n], answer: 'It is\n```json\n5\n```', says: 'and is not' },
    {
      name: 'without an output',
      outputs: [n, text('t')],
      answer: '{"n":1}',
      says: 'output "t" of node "ask" has no value and no default.',
    },
    {
      name: 'of another type',
      outputs: [n],
      answer: '{"n":[]}',
      says: 'output "n" of node "ask" must be integer, and a list cannot become that.',
    },
  ])('fails the node when the answer is $name', async ({ outputs, answer, says }) => {
    expect(await failureOf(document('hi', [], outputs), { model: [answer] })).toContain(says)
  })

  it('reads an answer of blank lines as fast as any', async () => {
    const answer = `\`\`\`${'\n'.repeat(200_000)}`
    expect(await failureOf(document('hi', [], [n]), { model: [answer] })).toContain('must be JSON')
  })
})

describe('a plugin node', () => {
  const document = flowOf(
    {
      start: start(text('a')),
      route: { component_type: 'Route', limit: 3, outputs: [typed('n', 'integer')] },
      high: end(typed('n', 'integer')),
      low: end(typed('n', 'integer')),
    },
    ['start -> route', 'route[high] -> high', 'route -> low'],
    { data: ['start.a -> route.a', 'route.n -> high.n', 'route.n -> low.n'] },
  )
  const nodes = {
    Route: Object.assign(
      ({ a }: JsonObject, { limit }: JsonObject) => ({
        output: { n: `${a}`, more: 1 },
        ...(Number(a) > Number(limit) ? { branch: 'high' } : {}),
      }),
      { inputs: [text('a')] as never },
    ),
  }

  it('is given its mapped inputs and its settings, and yields what it declares', async () => {
    expect(await outputsOf(document, { nodes, input: { a: '1' } })).toEqual({ n: 1 })
  })
  it.each([
    { name: 'the branch it chooses', a: '4', by: 'high' },
    { name: 'the edge without a branch, when it chooses none', a: '2', by: 'low' },
  ])('leaves by $name', async ({ a, by }) => {
    const events = await eventsOf(document, { nodes, input: { a } })
    expect(events.findLast(({ type }) => type === 'node_complete')).toMatchObject({ nodeName: by })
  })
})
