import { describe, expect, it } from 'vitest'
import { Clock } from '../../../testing/clock.ts'
import { noting, oneNode, says, Text } from '../../../testing/play.ts'
import { errorOf } from '../../../testing/threads.ts'
import {
  createRuntime,
  END,
  graph,
  type JsonObject,
  MemoryStore,
  middleware,
  node,
  type Policy,
  policy,
  type RuntimeOptions,
  SluiceError,
  START,
} from '../../index.ts'

const T = { thread: 't' }

/** A thread whose one tool call waits for a policy that asks with this schema, and whoever else is there. */
function play(ask: object, others: readonly Policy[] = [], options: RuntimeOptions = {}) {
  const act = noting()
  const graph = oneNode(async (_s, ctx) => ({ made: `${await ctx.callTool(act, { text: 'x' })}` }))
  const gate = policy({
    name: 'Gate',
    seams: {
      toolCall: {
        before: (_shown, { answered }) =>
          answered === undefined ? { action: 'suspend', ask: { question: 'may it?', ...ask } } : { action: 'proceed' },
      },
    },
  })
  const platform = new Clock()
  const runtime = createRuntime({ platform, store: new MemoryStore(), policies: [gate, ...others], ...options })
  return { act, platform, run: () => runtime.settle(graph, {}, T), runtime, graph }
}

const CHECKED: readonly { schema: JsonObject; fits: readonly unknown[]; not: readonly unknown[] }[] = [
  { schema: { type: 'boolean' }, fits: [true, false], not: ['no', 0, null, []] },
  { schema: { type: 'integer' }, fits: [3, -1], not: [0.5, '3'] },
  { schema: { type: ['string', 'null'] }, fits: ['', null], not: [false, {}] },
  { schema: { type: 'object', title: 'Anything' }, fits: [{ b: 1 }], not: [[], null, 'x'] },
  { schema: { type: 'array' }, fits: [[1]], not: [{ 0: 1 }] },
  { schema: { enum: ['low', { at: 1 }] }, fits: ['low', { at: 1 }], not: ['high', { at: 2 }] },
  { schema: { const: 7, description: 'Seven.' }, fits: [7], not: [8, '7'] },
  { schema: {}, fits: ['anything', null], not: [] },
]

describe('without a checker, an answer to a policy', () => {
  it.each(CHECKED)('is checked by type, enum and const: $schema', async ({ schema, fits, not }) => {
    for (const answer of fits) {
      const { run, runtime, graph } = play({ schema })
      await run()
      for (const bad of not) {
        const refused = await errorOf(runtime.resume(graph, 't', new Map([['step:act@Gate', bad]])))
        expect(refused).toMatchObject({ code: 'ANSWER_INVALID' })
      }
      const { status } = await runtime.resume(graph, 't', new Map([['step:act@Gate', answer]]))
      expect(status).toBe('completed')
    }
  })

  it('is refused where its schema says more: nobody could tell whether it fits; the tool does not run', async () => {
    const { run, runtime, graph, act } = play({ schema: { type: 'object', required: ['approved'] } })
    await run()
    const refused = await errorOf(runtime.resume(graph, 't', { approved: true }))
    expect(refused).toMatchObject({ code: 'ANSWER_INVALID', message: expect.stringContaining('"required"') })
    expect(act.ran).toEqual([])
  })
})

it('without a checker, an answer to own middleware is its own to read where the schema says more', async () => {
  const own = middleware({
    name: 'own',
    beforeTool: (ctx) => {
      if (ctx.answered !== undefined) return undefined
      return ctx.suspend({ schema: { type: 'object', required: ['approved'] } })
    },
  })
  const act = noting()
  const step = node('step', Text, async (_s, ctx) => ({ made: `${await ctx.callTool(act, { text: 'x' })}` }))
  const g = graph('g', Text, { middleware: [own] })
    .edge(START, step)
    .edge(step, END)
    .check()
  const runtime = createRuntime()
  await runtime.run(g, {}, T)
  expect(await errorOf(runtime.resume(g, 't', 'yes'))).toMatchObject({ code: 'ANSWER_INVALID' })
  expect((await runtime.resume(g, 't', { whatever: true })).status).toBe('completed')
})

it('an answer to a policy is refused where the checker cannot use its schema', async () => {
  const checkJson = async () => {
    throw new SluiceError('JSON_SCHEMA', 'it looks ahead')
  }
  const { run, runtime, graph, act } = play({ schema: { type: 'boolean' } }, [], { checkJson })
  await run()
  expect(await errorOf(runtime.resume(graph, 't', true))).toMatchObject({ code: 'ANSWER_INVALID' })
  expect(act.ran).toEqual([])
})

describe('an answer of another policy', () => {
  const bot = (value: unknown) => says('Bot', { 'ask.before': { action: 'replace', value } })
  const checkJson = async (_schema: JsonObject, value: unknown) => {
    if (typeof value !== 'boolean') throw new Error('it is no boolean')
  }

  it.each([{ checker: 'the runtime’s', checkJson }, { checker: 'no' }])(
    'is checked by the schema of the question too ($checker checker); one that does not fit is its failure',
    async ({ checkJson }) => {
      const { run, act } = play({ schema: { type: 'boolean' } }, [bot('certainly not')], { checkJson })
      const { error } = await run()
      expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', at: { policy: 'Bot', seam: 'ask' } })
      expect(act.ran).toEqual([])
      expect((await play({ schema: { type: 'boolean' } }, [bot(true)], { checkJson }).run()).status).toBe('completed')
    },
  )
})

describe('the default of a policy’s question', () => {
  it('that does not fit its schema is the policy’s failure, before anybody is asked', async () => {
    const { run, runtime } = play({ schema: { type: 'boolean' }, expiresInMs: 1_000, default: 'nope' })
    const { error } = await run()
    expect(error).toMatchObject({ code: 'MIDDLEWARE_FAILED', at: { policy: 'Gate', seam: 'toolCall' } })
    expect(error).toMatchObject({ message: expect.stringContaining('the default of its question') })
    expect((await runtime.history('t')).filter(({ type }) => type === 'ask')).toEqual([])
  })

  it('is the answer when it fits and nobody gives another in time', async () => {
    const { run, runtime, graph, platform } = play({ schema: { type: 'boolean' }, expiresInMs: 1_000, default: true })
    await run()
    await platform.pass(1_000)
    expect((await runtime.continue(graph, 't')).status).toBe('completed')
  })
})
