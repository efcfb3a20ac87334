import { describe, expect, it } from 'vitest'
import { type ChatRequest, own, readMessages, readResponse } from '../index.ts'
import { editRequest } from './read.ts'

describe('a response from outside', () => {
  it('is read with the fields that are known; others are dropped', () => {
    const call = { id: 'c', name: 'echo', arguments: '{}' }
    const value = { content: 'hi', finish_reason: 'stop', tool_calls: [{ ...call, type: 'function' }], logprobs: [1] }
    expect(readResponse(value, 'it')).toEqual({ content: 'hi', finish_reason: 'stop', tool_calls: [call] })
  })
  it('may lack a finish reason and, without calls, has no list of them', () => {
    expect(readResponse({ content: '', finish_reason: null, tool_calls: [] }, 'it')).toEqual({
      content: '',
      finish_reason: '',
    })
    expect(readResponse({ content: '', tool_calls: null }, 'it')).not.toHaveProperty('tool_calls')
  })
  it.each([
    {
      name: 'counts',
      usage: { inputTokens: 2, outputTokens: 3, totalTokens: 5 },
      reads: { inputTokens: 2, outputTokens: 3, totalTokens: 5 },
    },
    {
      name: 'the total where it is missing',
      usage: { inputTokens: 2, outputTokens: 3 },
      reads: { inputTokens: 2, outputTokens: 3, totalTokens: 5 },
    },
    {
      name: '0 for what is no count',
      usage: { inputTokens: -1, outputTokens: 'x' },
      reads: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
    },
    {
      name: 'the mark of an estimate',
      usage: { inputTokens: 1, outputTokens: 1, estimated: true },
      reads: { inputTokens: 1, outputTokens: 1, totalTokens: 2, estimated: true },
    },
  ])('tells its usage: $name', ({ usage, reads }) => {
    expect(readResponse({ content: '', usage }, 'it').usage).toEqual(reads)
  })
  it.each([
    { value: 'text', says: 'it must be an object { content, finish_reason?, tool_calls? }.' },
    { value: { content: null }, says: 'it needs a string "content".' },
    { value: { content: '', finish_reason: 1 }, says: 'it has a "finish_reason" that is no string.' },
    { value: { content: '', tool_calls: {} }, says: 'it has "tool_calls" that are no list.' },
    { value: { content: '', tool_calls: [1] }, says: 'it has a tool_calls[0] that is no object.' },
    {
      value: { content: '', tool_calls: [{ id: 'c', name: 'n', arguments: {} }] },
      says: 'it needs strings "id", "name" and "arguments" in tool_calls[0].',
    },
  ])('is refused, naming what is wrong: $says', ({ value, says }) => {
    expect(() => readResponse(value, 'it')).toThrow(expect.objectContaining({ code: 'CHAT_SHAPE', message: says }))
  })
})

describe('an edit of a request', () => {
  const echo = { name: 'echo', description: 'Says it again.', parameters: {} }
  const other = { ...echo, name: 'other' }
  const request = own({ model: 'm', messages: [], tools: [echo, other], temperature: 1 }) as unknown as ChatRequest

  it('changes the fields it gives, and a field it does not give keeps its value', () => {
    const edited = editRequest(request, { model: 'n', maxTokens: 5, temperature: undefined }, 'the edit')
    expect(edited).toEqual({ ...request, model: 'n', maxTokens: 5 })
  })
  it('may cut the list of tools down, by name or by definition, and keeps their definitions', () => {
    expect(editRequest(request, { tools: ['other'] }, 'the edit').tools).toEqual([other])
    expect(
      editRequest(request, { tools: [{ ...echo, description: 'Deletes everything.' }] }, 'the edit').tools,
    ).toEqual([echo])
  })
  it.each([
    {
      edit: { tools: ['rm'] },
      says: 'the edit names a tool "rm" that the request does not offer; offered are: echo, other.',
    },
    {
      edit: { tool_choice: 'none' },
      says: 'the edit has an unknown field "tool_choice"; fields are: messages, model, temperature, maxTokens, topP, responseFormat, tools.',
    },
    { edit: { model: '' }, says: 'the edit has a "model" that is no name.' },
    { edit: { topP: 'high' }, says: 'the edit has a "topP" that is no finite number.' },
    { edit: { messages: 'hi' }, says: 'the edit has "messages" that are no list.' },
    { edit: 'shorter', says: 'the edit must be an object with the fields to change.' },
    { edit: JSON.parse('{ "__proto__": 1 }'), says: 'the edit has an unknown field "__proto__"' },
  ])('is refused, naming what is wrong: $says', ({ edit, says }) => {
    expect(() => editRequest(request, edit, 'the edit')).toThrow(
      expect.objectContaining({ code: 'CHAT_SHAPE', message: expect.stringContaining(says) }),
    )
  })
})

describe('messages from outside', () => {
  it('are read with the fields that are known', () => {
    const message = { id: 'm', role: 'assistant', content: '', tool_calls: [{ id: 'c', name: 'n', arguments: '{}' }] }
    expect(readMessages([{ ...message, refusal: null }], 'it')).toEqual([message])
  })
  it('are refused by position', () => {
    expect(() => readMessages([{ role: 'user', content: '' }, {}], 'the request')).toThrow(
      'the request, messages[1], needs a "role"',
    )
  })
})
