import { describe, expect, it } from 'vitest'
import { quiet } from '../../testing/clock.ts'
import { type Answer, eventsOf, oneNode, says, trying } from '../../testing/play.ts'
import { type ChatModel, type RunEvent, type ScriptedReply, scripted } from '../index.ts'

const HELLO = { messages: [{ role: 'user' as const, content: 'hello' }] }
const pass = { action: 'pass' }

/** What the user’s stream shows of one model call, and when a policy at its `after` was consulted. */
async function shown(
  replies: readonly ScriptedReply[],
  policies: readonly ReturnType<typeof says>[],
  streams?: boolean,
) {
  const model: ChatModel = scripted(replies)
  return story(await eventsOf({ graph: trying((ctx) => ctx.callModel(model, HELLO)).graph, policies, streams }))
}

const story = (events: readonly RunEvent[]): string[] =>
  events.flatMap((event) => {
    if (event.type === 'token') return [event.substituted ? `"${event.text}" substituted` : event.text.trim()]
    if (event.type === 'retracted') return [`${event.tokens} retracted`]
    return event.type.startsWith('plugin:') ? [`(${event.type.split(':')[1]} judges)`] : []
  })

/** A policy that marks in the stream when it is consulted. */
const judge = (name: string, answer: Answer, stream?: 'hold' | 'pass') =>
  says(
    name,
    {
      'modelCall.after': (shown, ctx) => {
        ctx.emitEvent('judges')
        return typeof answer === 'function' ? answer(shown, ctx) : answer
      },
    },
    { stream },
  )

const retryOnce: Answer = (_, { attempt }) => (attempt === 1 ? { action: 'retry' } : pass)
const redact = { action: 'replace', value: { content: 'redacted words' } }

describe('where nobody judges responses', () => {
  it('their parts leave as they come', async () => {
    const before = says('Gate', { 'modelCall.before': { action: 'proceed' } })
    expect(await shown(['one two three'], [before])).toEqual(['one', 'two', 'three'])
  })

  it('a runtime that does not stream sends none', async () => {
    expect(await shown(['one two'], [], false)).toEqual([])
  })

  it('a response that a policy gave in place of the call leaves as one part, marked', async () => {
    const cache = says('Cache', { 'modelCall.before': { action: 'replace', value: { content: 'from the cache' } } })
    expect(await shown(['one two'], [cache])).toEqual(['"from the cache" substituted'])
  })
})

describe('parts that are held, since an enforcing policy judges the response', () => {
  it('leave when it is settled, as the parts they were', async () => {
    expect(await shown(['one two'], [judge('Judge', pass)])).toEqual(['(Judge judges)', 'one', 'two'])
  })

  it('are held for a policy that says nothing of streams, even where another lets them pass', async () => {
    const policies = [judge('Open', pass, 'pass'), judge('Judge', pass)]
    expect(await shown(['one two'], policies)).toEqual(['(Open judges)', '(Judge judges)', 'one', 'two'])
  })

  it('never leave when the response is replaced: what leaves is the new one, as one part, marked', async () => {
    expect(await shown(['one two'], [judge('Judge', redact)])).toEqual([
      '(Judge judges)',
      '"redacted words" substituted',
    ])
  })

  it('never leave when their attempt is given up; those of the next one do', async () => {
    expect(await shown(['one two', 'three four'], [judge('Judge', retryOnce)])).toEqual([
      '(Judge judges)',
      '(Judge judges)',
      'three',
      'four',
    ])
  })

  it('never leave when the response is failed', async () => {
    expect(await shown(['one two'], [judge('Judge', { action: 'fail', reason: 'no' })])).toEqual(['(Judge judges)'])
  })
})

describe('parts that pass, since every policy there declares stream: pass', () => {
  it('leave as they come, before the verdict', async () => {
    expect(await shown(['one two'], [judge('Open', pass, 'pass')])).toEqual(['one', 'two', '(Open judges)'])
  })

  it.each([
    {
      name: 'a new attempt',
      answer: retryOnce,
      replies: ['one two', 'three'],
      tells: ['one', 'two', '(Open judges)', '2 retracted', 'three', '(Open judges)'],
    },
    {
      name: 'a replacement',
      answer: redact,
      replies: ['one two'],
      tells: ['one', 'two', '(Open judges)', '2 retracted', '"redacted words" substituted'],
    },
    {
      name: 'a failure',
      answer: { action: 'fail', reason: 'no' },
      replies: ['one two'],
      tells: ['one', 'two', '(Open judges)', '2 retracted'],
    },
  ])('are called back after $name', async ({ answer, replies, tells }) => {
    expect(await shown(replies, [judge('Open', answer, 'pass')])).toEqual(tells)
  })

  it('are called back when the stream itself breaks off', async () => {
    const breaking: ChatModel = {
      model: 'breaking',
      chat: () => Promise.reject(new Error('not streamed')),
      async *stream() {
        yield { content: 'one ' }
        throw new Error('connection reset')
      },
    }
    const { graph, seen } = trying((ctx) => ctx.callModel(breaking, HELLO))
    expect(story(await eventsOf({ graph }))).toEqual(['one', '1 retracted'])
    expect(seen.error).toEqual(new Error('connection reset'))
  })

  it('are called back when the node gave the call up by failing beside it, and is tried again', async () => {
    const endless: ChatModel = {
      model: 'endless',
      chat: () => Promise.reject(new Error('not streamed')),
      async *stream() {
        yield { content: 'one ' }
        await new Promise(() => {})
      },
    }
    const failing = oneNode(async (_, ctx) => {
      if (ctx.attempt > 1) return
      void ctx.callModel(endless, HELLO)
      await quiet()
      throw new Error('no')
    })
    const policies = [says('Again', { 'nodeError.after': { action: 'retry' } })]
    expect(story(await eventsOf({ graph: failing, policies }))).toEqual(['one', '1 retracted'])
  })

  it('are not called back by a verdict that comes after the call: that of node.after is too late', async () => {
    const late = says('Late', { 'node.after': { action: 'replace', value: { made: 'redacted' } } })
    expect(await shown(['one two'], [late])).toEqual(['one', 'two'])
  })
})
