import type { ChatMessage } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { agent, end, flowOf, type Parts, start, text, typed } from '../document.fixture.ts'
import { eventsOf, failureOf, outputsOf, type Playing, play } from './run.fixture.ts'

const guarded = (transforms: readonly Parts[], outputs?: readonly object[], data?: readonly string[]) =>
  flowOf(
    {
      start: start(text('task')),
      agent: { component_type: 'AgentNode', agent: agent({ transforms }), ...(outputs && { outputs }) },
      end: outputs ? end(...outputs) : { component_type: 'EndNode' },
    },
    ['start -> agent', 'agent -> end'],
    data && { data },
  )
const shout = { component_type: 'Shout', id: 'shout', name: 'shout' }
const guard = { component_type: 'Guard', id: 'guard', name: 'my guard' }
const input = { task: 'tidy up' }

const changed = (messages: readonly ChatMessage[], last: string) => ({
  action: 'modify' as const,
  messages: [...messages.slice(0, -1), { ...(messages.at(-1) as ChatMessage), content: last }],
})
const louder = (messages: readonly ChatMessage[]) => changed(messages, `${messages.at(-1)?.content.toUpperCase()}!`)
const pass = () => ({ action: 'pass' as const })

describe('a transform before the agent', () => {
  it('sees what the conversation opens with, and changes what the model is asked', async () => {
    const { requests, state } = await play(guarded([shout]), {
      transforms: { Shout: ['pre', louder] },
      model: ['ok'],
      input,
    })
    expect(requests[0]?.messages).toEqual([
      { role: 'system', content: 'Help.' },
      { role: 'user', content: '{"TASK":"TIDY UP"}!' },
    ])
    expect(state).toEqual({ task: 'tidy up', result: 'ok', transform_status: 'ok' })
  })

  it('sees it as those before it left it', async () => {
    const transforms: Playing['transforms'] = { Shout: ['pre', louder] }
    const { requests } = await play(guarded([shout, { ...shout, id: 'again' }]), { transforms, model: ['ok'], input })
    expect(requests[0]?.messages.at(-1)?.content).toBe('{"TASK":"TIDY UP"}!!')
  })

  it('may reject: the model is not asked, and its reason is the result', async () => {
    const { state, requests } = await play(guarded([guard, shout]), {
      transforms: {
        Guard: ['pre', () => ({ action: 'reject', reason: 'looks like a trick' })],
        Shout: ['pre', () => expect.unreachable('a transform after the rejection')],
      },
      input,
    })
    expect(requests).toEqual([])
    expect(state).toEqual({
      task: 'tidy up',
      result: 'looks like a trick',
      transform_status: 'rejected',
      transform_reason: 'looks like a trick',
      transform_name: 'my guard',
      transform_phase: 'pre',
    })
  })
})

describe('a transform after the agent', () => {
  const transforms: Playing['transforms'] = { Shout: ['post', louder] }

  it('sees the whole conversation, and changes the answer', async () => {
    const seen: (readonly ChatMessage[])[] = []
    const watching: Playing['transforms'] = {
      Shout: [
        'post',
        (messages) => {
          seen.push(messages)
          return louder(messages)
        },
      ],
    }
    expect(await outputsOf(guarded([shout]), { transforms: watching, model: ['done'], input })).toMatchObject({
      result: 'DONE!',
      transform_status: 'ok',
    })
    expect(seen[0]?.map(({ role, content }) => `${role}: ${content}`)).toEqual([
      'system: Help.',
      'user: {"task":"tidy up"}',
      'assistant: done',
    ])
  })

  it('may reject, with a text of its own for the result', async () => {
    const refusal = { role: 'assistant' as const, content: 'I cannot say.' }
    const Guard: NonNullable<Playing['transforms']>[string] = [
      'post',
      (messages) => ({ action: 'reject', reason: 'a secret', messages: [...messages, refusal] }),
    ]
    expect(
      await outputsOf(guarded([guard]), { transforms: { Guard }, model: ['the key is 1234'], input }),
    ).toMatchObject({
      result: 'I cannot say.',
      transform_status: 'rejected',
      transform_reason: 'a secret',
      transform_phase: 'post',
    })
  })

  it('keeps the answer from being streamed before it was seen (O4)', async () => {
    const tokens = async (playing: Playing) =>
      (await eventsOf(guarded([shout]), { model: ['one two'], input, ...playing })).filter(
        ({ type }) => type === 'token',
      )
    expect(await tokens({ transforms })).toEqual([])
    expect(await tokens({ transforms: { Shout: ['pre', pass] } })).toHaveLength(2)
  })
})

it('a transform for both sides is asked on both', async () => {
  const phases: string[] = []
  const both: Playing['transforms'] = {
    Shout: [
      'both',
      (_, phase) => {
        phases.push(phase)
        return { action: 'pass' }
      },
    ],
  }
  await outputsOf(guarded([shout]), { transforms: both, model: ['ok'], input })
  expect(phases).toEqual(['pre', 'post'])
})

describe('where the node declares its outputs', () => {
  const reject: Playing['transforms'] = { Guard: ['pre', () => ({ action: 'reject', reason: 'a trick' })] }
  const accept: Playing['transforms'] = { Guard: ['pre', pass] }
  const all = ['transform_status', 'transform_reason', 'transform_name', 'transform_phase'].map((title) => text(title))

  it('those of transforms are not asked of the model', async () => {
    const { state, requests } = await play(guarded([guard], [text('answer'), text('transform_status')]), {
      transforms: accept,
      model: ['fine'],
      input,
    })
    expect(requests[0]?.responseFormat).toBeUndefined()
    expect(state).toEqual({ answer: 'fine', transform_status: 'ok' })
  })
  it('none of them is missing when all went well', async () => {
    expect(
      await outputsOf(guarded([guard], [text('answer'), ...all]), { transforms: accept, model: ['fine'], input }),
    ).toEqual({
      answer: 'fine',
      transform_status: 'ok',
      transform_reason: '',
      transform_name: '',
      transform_phase: '',
    })
  })
  it('a rejection is the text of the one that is a text', async () => {
    expect(await outputsOf(guarded([guard], [text('answer'), ...all]), { transforms: reject, input })).toEqual({
      answer: 'a trick',
      transform_status: 'rejected',
      transform_reason: 'a trick',
      transform_name: 'my guard',
      transform_phase: 'pre',
    })
  })
  it('or leaves the others to their defaults', async () => {
    const outputs = [typed('n', 'integer', { default: 0 }), text('transform_status')]
    expect(await outputsOf(guarded([guard], outputs), { transforms: reject, input })).toEqual({
      n: 0,
      transform_status: 'rejected',
    })
  })
  it('or fails the node, with who rejected and why', async () => {
    expect(await failureOf(guarded([guard], [typed('n', 'integer')]), { transforms: reject, input })).toBe(
      'transform "my guard" rejected the conversation of agent "helper": a trick. Its node has no default for output "n".',
    )
  })
})
