import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { eventsOf, ofType, settle } from '../../testing/play.ts'
import { setUp } from '../../testing/threads.ts'
import {
  type AgentOptions,
  createAgent,
  createRuntime,
  type ScriptedModel,
  type ScriptedReply,
  StructuredOutputError,
  scripted,
  tool,
} from '../index.ts'

const Verdict = z.object({ approved: z.boolean(), reason: z.string().default('none given') })
const look = tool('look', { description: 'd', input: z.object({}), run: () => 'seen' })
const looks: ScriptedReply = { tool_calls: [{ name: 'look' }] }

type Options = Partial<Pick<AgentOptions<never, never, never>, 'invalidOutput' | 'maxRounds' | 'parameters'>>
const judge = (model: ScriptedModel, options: Options = {}) =>
  createAgent({ name: 'judge', model, tools: [look], output: Verdict, ...options })
const settled = (model: ScriptedModel, options?: Options) => settle({ graph: judge(model, options), input: 'well?' })

describe('the output of an agent', () => {
  it('is what its schema makes of the answer, asked for by its JSON Schema', async () => {
    const model = scripted(['{"approved":true}'])
    const { state } = await settled(model)
    expect(state.finalOutput).toEqual({ approved: true, reason: 'none given' })
    expect(state.finalText).toBe('{"approved":true}')
    expect(model.requests[0]?.responseFormat).toMatchObject({
      type: 'json_schema',
      name: 'final_output',
      schema: { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] },
    })
  })
  it('is asked for in every request, and read of the answer alone', async () => {
    const model = scripted([looks, '{"approved":false}'])
    const { state } = await settled(model)
    expect(model.requests.map(({ responseFormat }) => responseFormat !== undefined)).toEqual([true, true])
    expect(state.finalOutput).toMatchObject({ approved: false })
  })
  it('may be asked for in another form', async () => {
    const model = scripted(['{"approved":true}'])
    await settled(model, { parameters: { temperature: 0, responseFormat: { type: 'json_object' } } })
    expect(model.requests[0]).toMatchObject({ temperature: 0, responseFormat: { type: 'json_object' } })
  })
})

describe('an answer that does not fit', () => {
  it.each([
    { name: 'no JSON', raw: 'Yes!', reason: /^Unexpected token/ },
    { name: 'JSON that the schema does not take', raw: '{"approved":"yes"}', reason: /approved: Invalid input/ },
    { name: 'nothing at all', raw: '', reason: /^Unexpected end/ },
  ])('I18: is an error with the raw text: $name', async ({ raw, reason }) => {
    const { status, error } = await settled(scripted([raw]))
    expect(status).toBe('failed')
    expect(error).toBeInstanceOf(StructuredOutputError)
    expect(error).toMatchObject({
      name: 'StructuredOutputError',
      code: 'OUTPUT_INVALID',
      raw,
      reason: expect.stringMatching(reason),
      at: { node: 'judge' },
    })
  })
  it('I18: or an event and no output, where the agent says so', async () => {
    const agent = judge(scripted(['Yes!']), { invalidOutput: 'emit' })
    const events = await eventsOf({ graph: agent, input: 'well?' })
    expect(ofType(events, 'custom').map(({ data }) => data)).toEqual([
      { kind: 'invalid_output', message: expect.stringContaining('Unexpected token'), raw: 'Yes!' },
    ])
    expect(ofType(events, 'run_end')[0]?.result).toMatchObject({ finalText: 'Yes!', finalOutput: null })
  })
})

describe('an answer that may be mended', () => {
  const repair = { invalidOutput: 'repair' } as const
  it('is asked for once more, with what was wrong; what came between stays out of the conversation', async () => {
    const model = scripted(['Yes!', '{"approved":true}'])
    const { state } = await settled(model, repair)
    expect(state.finalOutput).toMatchObject({ approved: true })
    expect(state.messages.map(({ content }) => content)).toEqual(['well?', '{"approved":true}'])
    expect(model.requests[1]?.messages.slice(1)).toEqual([
      { role: 'assistant', content: 'Yes!' },
      {
        role: 'user',
        content: expect.stringMatching(/^Your answer was not used: Unexpected token .* fits the schema\.$/),
      },
    ])
  })
  it('may be mended with the help of tools', async () => {
    const { state } = await settled(scripted([looks, 'Yes!', looks, '{"approved":true}']), repair)
    expect(state.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'tool',
      'assistant',
    ])
  })
  it('is asked for once, and not twice', async () => {
    const model = scripted(['Yes!', 'Yes, really!', '{"approved":true}'])
    expect((await settled(model, repair)).error).toMatchObject({ code: 'OUTPUT_INVALID', raw: 'Yes, really!' })
    expect(model.requests).toHaveLength(2)
  })
  it('takes a round: where none is left it is the error', async () => {
    const model = scripted(['Yes!', '{"approved":true}'])
    expect((await settled(model, { ...repair, maxRounds: 1 })).error).toMatchObject({ code: 'OUTPUT_INVALID' })
    expect(model.requests).toHaveLength(1)
  })
  it('is not asked for again by whoever goes on in another process', async () => {
    const { store } = setUp()
    const asks = tool('look', { description: 'd', input: z.object({}), run: (_args, ctx) => ctx.ask('q', 'well?') })
    const process = (replies: readonly ScriptedReply[]) => {
      const model = scripted(replies)
      return { model, agent: createAgent({ model, tools: [asks], output: Verdict, ...repair }) }
    }
    const first = process(['Yes!', looks])
    expect((await createRuntime({ store }).run(first.agent, 'well?', { thread: 't' })).status).toBe('paused')
    const second = process(['{"approved":true}'])
    const { state } = await createRuntime({ store }).resume(second.agent, 't', 'fine')
    expect(state.finalOutput).toMatchObject({ approved: true })
    expect(second.model.requests).toHaveLength(1)
  })
})
