import { describe, expect, it } from 'vitest'
import { type ChatRequest, ResponseAssembler, type ScriptedModel, scripted } from '../index.ts'

const request = (content: string): ChatRequest => ({ model: 'scripted', messages: [{ role: 'user', content }] })
const options = { signal: new AbortController().signal }
const ask = (model: ScriptedModel, content = 'hi') => model.chat(request(content), options)

describe('a scripted model', () => {
  it('answers one reply for each request, in order, and remembers what it was asked', async () => {
    const model = scripted(['one', 'two'])
    expect([(await ask(model, 'a')).content, (await ask(model, 'b')).content]).toEqual(['one', 'two'])
    expect(model.requests.map(({ messages }) => messages[0]?.content)).toEqual(['a', 'b'])
  })
  it.each([
    { name: 'a text', reply: 'hi', response: { content: 'hi', finish_reason: 'stop' } },
    {
      name: 'calls, with ids made up where none is given',
      reply: {
        tool_calls: [
          { name: 'a', arguments: { x: 1 } },
          { id: 'mine', name: 'b' },
        ],
      },
      response: {
        content: '',
        finish_reason: 'tool_calls',
        tool_calls: [
          { id: 'call-1-1', name: 'a', arguments: '{"x":1}' },
          { id: 'mine', name: 'b', arguments: '{}' },
        ],
      },
    },
    {
      name: 'broken arguments, as text',
      reply: { tool_calls: [{ id: 'c', name: 'a', arguments: '{"x":' }], finish_reason: 'stop' },
      response: { content: '', finish_reason: 'stop', tool_calls: [{ id: 'c', name: 'a', arguments: '{"x":' }] },
    },
    {
      name: 'what a function of the request gives',
      reply: ({ messages }: ChatRequest) => `you said ${messages[0]?.content}`,
      response: { content: 'you said hi', finish_reason: 'stop' },
    },
  ])('may answer $name', async ({ reply, response }) => {
    expect(await ask(scripted([reply]))).toEqual(response)
  })
  it('throws an error of the script, the very object', async () => {
    const error = new Error('429 Too Many Requests: slow down')
    await expect(ask(scripted([error]))).rejects.toBe(error)
  })
  it('I22: says so, and which request it was, when it is asked once more than it has replies', async () => {
    const model = scripted(['one'])
    await ask(model)
    await expect(ask(model)).rejects.toMatchObject({
      code: 'SCRIPT_EXHAUSTED',
      message: 'the scripted model has no reply to request 2: its list has 1. Give it more, or "otherwise".',
    })
  })
  it('I22: answers with something else from then on, where that is given', async () => {
    const model = scripted(['first'], { otherwise: ({ messages }) => `you said ${messages[0]?.content}` })
    const answers = [await ask(model, 'a'), await ask(model, 'b'), await ask(model, 'c')]
    expect(answers.map(({ content }) => content)).toEqual(['first', 'you said b', 'you said c'])
  })
  it('streams the same as it answers, word by word', async () => {
    const reply = { content: ' two  words\n', tool_calls: [{ id: 'c', name: 'a', arguments: { x: 1 } }] }
    const assembler = new ResponseAssembler()
    const words: string[] = []
    for await (const chunk of scripted([reply]).stream?.(request('hi'), options) ?? []) {
      assembler.add(chunk)
      if (chunk.content) words.push(chunk.content)
    }
    expect(words).toEqual([' ', 'two  ', 'words\n'])
    expect(assembler.response()).toEqual(await ask(scripted([reply])))
  })
})
