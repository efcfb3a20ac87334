import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { after } from '../../testing/fields.ts'
import {
  append,
  createRuntime,
  END,
  graph,
  messages,
  node,
  removeMessage,
  replaceWith,
  START,
  state,
} from '../index.ts'

const runtime = createRuntime()

describe('messages()', () => {
  const said = messages()
  const m1 = { id: 'm1', role: 'user', content: 'one' }
  const m2 = { id: 'm2', role: 'assistant', content: 'two' }
  const plain = { role: 'user', content: 'no id' }

  it('adds messages at the end of the conversation, which starts empty', async () => {
    expect(await after(said, [m1], [plain, m2])).toEqual([m1, plain, m2])
  })
  it('A8: puts a message in the place of the one with its id, and keeps the order', async () => {
    expect(await after(said, [m1, m2], [{ ...m1, content: 'changed' }])).toEqual([{ ...m1, content: 'changed' }, m2])
  })
  it('takes a message out by its id', async () => {
    expect(await after(said, [m1, plain, m2], [removeMessage('m1')])).toEqual([plain, m2])
  })
  it.each([
    { name: 'adds it twice', update: [m1, m1] },
    { name: 'takes it out and adds it', update: [removeMessage('m2'), m2] },
  ])('A9: an update that uses an id twice is refused: $name', async ({ update }) => {
    await expect(after(said, [m2], update)).rejects.toMatchObject({
      code: 'STATE_UPDATE',
      message: expect.stringMatching(/uses the message id "m\d" twice/),
    })
  })
  it('A10: a message that is not there cannot be taken out; the error names id, field and node', async () => {
    await expect(after(said, [m1], [removeMessage('m9')])).rejects.toThrow(
      'node "w1" cannot be merged into field "f": there is no message with id "m9" to remove.',
    )
  })
  it('A11: removal has its place in an update of a conversation only', async () => {
    await expect(after(said, [m1], replaceWith([removeMessage('m1')]))).rejects.toThrow('messages[0] needs a "role"')
    await expect(after(append(z.object({ role: z.string() })), [removeMessage('m1')])).rejects.toThrow(
      'item 0 does not fit',
    )
    await expect(after(said, removeMessage('m1'))).rejects.toThrow(
      'messages takes a list, not an object; return [item].',
    )
  })
  it('is not given its own conversation back, which would double it', async () => {
    const State = state({ n: z.number().default(0), messages: messages() })
    const spread = node('spread', State, (s) => ({ ...s, n: 1 }))
    const running = runtime.run(graph('g', State).edge(START, spread).edge(spread, END).check(), {
      messages: [{ role: 'user', content: 'hi' }],
    })
    await expect(running).rejects.toThrow('it was given its own current list')
  })
  it.each([
    { wrong: 'hello', says: 'messages[1] must be an object.' },
    { wrong: { role: 'robot', content: '' }, says: 'messages[1] needs a "role" of system, user, assistant, tool.' },
    { wrong: { role: 'user', content: null }, says: 'messages[1] needs a string "content".' },
    { wrong: { role: 'tool', content: '' }, says: 'messages[1] needs a string "tool_call_id".' },
    {
      wrong: { role: 'assistant', content: '', tool_calls: [{ id: 'c' }] },
      says: 'messages[1] needs strings "id", "name" and "arguments" in tool_calls[0].',
    },
  ])('A16: takes chat messages and nothing else: $wrong is refused', async ({ wrong, says }) => {
    await expect(after(said, [m1, wrong])).rejects.toThrow(says)
  })
})
