// A middleware that says nothing changes nothing: 1,000 random graphs, and the graphs that we show.
import {
  agentNode,
  append,
  createRuntime,
  END,
  graph,
  graphNode,
  type Middleware,
  messages,
  node,
  policy,
  START,
  type StateOf,
  send,
  state,
  tool,
  type UpdateFor,
} from '@sluice/core'
import { expectNeutral, type NeutralCase, scripted, silent, transparent } from '@sluice/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { plans } from '../differential/random.ts'
import { playOnSluice } from '../differential/sluice.ts'

/** More of them by hand: `NEUTRALITY_GRAPHS=20000 NEUTRALITY_SEED=7 npx vitest run tests/neutrality`. */
const numRuns = Number(process.env.NEUTRALITY_GRAPHS ?? 1_000)
const seed = Number(process.env.NEUTRALITY_SEED ?? 1)

const many = (count: number, make: (name: string) => Middleware) =>
  Array.from({ length: count }, (_, i) => make(`${make.name}-${i}`))

const lists = [many(1, silent), many(5, silent), many(20, silent), many(1, transparent), many(5, transparent)]

describe('middleware that says nothing', () => {
  it(
    'changes no superstep, write, question, failure or end of random graphs',
    async () => {
      const property = fc.asyncProperty(plans, fc.constantFrom(...lists), async (plan, middleware) => {
        expect(await playOnSluice(plan, { middleware })).toEqual(await playOnSluice(plan))
      })
      await fc.assert(property, { numRuns, seed })
    },
    Math.max(120_000, numRuns * 500),
  )

  const Chat = state({ messages: messages(), log: append(z.string()), n: z.number().default(0) })

  const echo = tool('echo', {
    description: 'Says it again.',
    input: z.object({ text: z.string() }),
    run: ({ text }) => text,
  })
  const breaks = tool('breaks', {
    description: 'Breaks.',
    input: z.object({}),
    run: () => Promise.reject(new Error('no')),
  })

  const replies = [
    {
      content: 'let me see',
      tool_calls: [
        { id: 'a', name: 'echo', arguments: { text: 'hello' } },
        { id: 'b', name: 'breaks', arguments: {} },
        { id: 'c', name: 'unknown', arguments: {} },
        { id: 'd', name: 'echo', arguments: { wrong: true } },
      ],
    },
    new Error('503 Service Unavailable: later'),
    'one two three',
  ]

  const input = { messages: [{ role: 'user', content: 'go' }] } as const
  const agent = (middleware: readonly Middleware[]) => {
    const think = agentNode('think', Chat, { model: scripted(replies), tools: [echo, breaks] })
    return graph('agent', Chat, { middleware }).edge(START, think).edge(think, END).check()
  }
  const retries = policy({
    name: 'Retries',
    stream: 'pass',
    seams: {
      modelCall: { after: ({ outcome }) => (outcome.ok ? { action: 'pass' } : { action: 'retry' }) },
      toolCall: {
        before: ({ input: args }) => ({
          action: 'modify',
          input: { ...args, ...('text' in args ? { text: 'HELLO' } : {}) },
        }),
      },
    },
  })
  const boom = new Error('boom')

  type Case = NeutralCase<StateOf<typeof Chat>, UpdateFor<typeof Chat>>

  const cases: readonly { readonly name: string; readonly make: (own: readonly Middleware[]) => Case }[] = [
    { name: 'an agent whose model fails', make: (own) => ({ graph: agent(own), input }) },
    { name: 'an agent past policies', make: (own) => ({ graph: agent(own), input, policies: [retries] }) },
    {
      name: 'a fan-out',
      make: (own) => {
        const work = node('work', Chat, ({ n }) => ({ log: [`did ${n}`] }))
        const plan = node('plan', Chat, () => ({ log: ['plan'] }))
        const spread = node('spread', Chat, async (_, ctx) => {
          await ctx.once('think', () => 1)
          return { log: ['spread'] }
        })
        const each = node('each', Chat, () => send(work, { n: 7 }), { goto: [work] })
        return {
          graph: graph('fan', Chat, { middleware: own })
            .edge(START, plan)
            .edge(plan, spread)
            .edge(spread, each)
            .edge(work, END)
            .check(),
        }
      },
    },
    {
      name: 'a question in a child run',
      make: (own) => {
        const asks = node('asks', Chat, async (_, ctx) => ({ n: (await ctx.ask('how', 'How many?')) as number }))
        const child = graph('child', Chat).edge(START, asks).edge(asks, END).check()
        const sub = graphNode('sub', Chat, child, { share: ['n'] })
        return {
          graph: graph('outer', Chat, { middleware: own }).edge(START, sub).edge(sub, END).check(),
          answer: () => 3,
        }
      },
    },
    {
      name: 'a node that fails',
      make: (own) => {
        const fails = node('fails', Chat, () => {
          throw boom
        })
        return { graph: graph('fails', Chat, { middleware: own }).edge(START, fails).edge(fails, END).check() }
      },
    },
  ]
  it.each(cases)('changes nothing of $name', ({ make }) => expectNeutral(make))

  it('hands on the very error that was thrown', async () => {
    const fails = node('fails', Chat, () => {
      throw boom
    })
    for (const middleware of lists) {
      const made = graph('fails', Chat, { middleware }).edge(START, fails).edge(fails, END).check()
      expect((await createRuntime().settle(made)).error).toBe(boom)
    }
  })
})
