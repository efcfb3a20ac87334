import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  collectMiddlewareTools,
  type HookName,
  Middleware,
  middleware,
  Replacement,
  runAfterHooks,
  runBeforeHooks,
  tool,
} from '../index.ts'

const adds = (name: string) =>
  middleware({
    name,
    beforeNode: (ctx) => ctx.replace([...ctx.state, `before ${name}`]),
    afterNode: async (ctx) => ctx.replace([...ctx.state, `after ${name}`]),
  })
const contextOf = (state: readonly string[]) => ({ state, replace: <V>(value: V) => new Replacement(value) })
const list = [adds('a'), middleware({ name: 'silent', beforeNode: () => undefined }), adds('b')]

describe('hooks run by hand', () => {
  it('G2: before hooks in list order, each on what the one before it left', async () => {
    expect(await runBeforeHooks(list, 'beforeNode', ['given'], contextOf)).toEqual(['given', 'before a', 'before b'])
  })
  it('G2: after hooks in reverse order', async () => {
    expect(await runAfterHooks(list, 'afterNode', ['given'], contextOf)).toEqual(['given', 'after b', 'after a'])
  })
  it('have a context made for each, which may take its time', async () => {
    const made: (readonly string[])[] = []
    const slow = async (state: readonly string[]) => {
      made.push(state)
      return contextOf(state)
    }
    await runBeforeHooks(list, 'beforeNode', ['given'], slow)
    expect(made).toEqual([['given'], ['given', 'before a'], ['given', 'before a']])
  })
  it('G4: may replace a value with nothing', async () => {
    const nothing = middleware({ name: 'nothing', beforeTool: () => new Replacement(null as never) })
    expect(await runBeforeHooks([nothing], 'beforeTool', { a: 1 }, () => ({}))).toBeNull()
  })
  it.each([
    { name: 'a plain object', returned: { a: 1 }, says: 'an object' },
    { name: 'a promise of a list', returned: Promise.resolve([1]), says: 'a list' },
    { name: 'null', returned: null, says: 'null' },
  ])(
    'G3: whose hook returns $name are a TypeError that names middleware, hook and type',
    async ({ returned, says }) => {
      const wrong = middleware({ name: 'wrong', beforeNode: () => returned as never })
      await expect(runBeforeHooks([wrong], 'beforeNode', [], contextOf)).rejects.toThrow(
        new TypeError(`wrong.beforeNode returned ${says}; it may return ctx.replace(…), nothing.`),
      )
    },
  )
  it.each<{ run: typeof runBeforeHooks; hook: HookName }>([
    { run: runBeforeHooks, hook: 'beforeGraph' },
    { run: runAfterHooks, hook: 'afterGraph' },
    { run: runBeforeHooks, hook: 'afterNode' },
    { run: runAfterHooks, hook: 'beforeNode' },
    { run: runBeforeHooks, hook: 'beforeRound' },
    { run: runAfterHooks, hook: 'onError' },
  ])('G37: $hook has no value to hand on: a RangeError', async ({ run, hook }) => {
    await expect(run([], hook, [] as readonly string[], contextOf)).rejects.toThrow(RangeError)
  })
  it('G36: what is no middleware is a TypeError', async () => {
    const fake = { name: 'fake', beforeNode: () => undefined } as never
    await expect(runBeforeHooks([fake], 'beforeNode', [], contextOf)).rejects.toThrow('an object is no middleware')
    expect(() => collectMiddlewareTools([fake])).toThrow(TypeError)
  })
})

describe('the tools of middleware', () => {
  const named = (name: string) => tool(name, { description: 'd', input: z.object({}), run: () => name })
  class Gives extends Middleware {
    override *tools() {
      yield named('one')
      yield named('two')
    }
  }
  it('are collected in list order, and none is left out', () => {
    const two = middleware({ name: 'again', tools: () => [named('one')] })
    expect(collectMiddlewareTools([new Gives(), list[0] as Middleware, two]).map(({ name }) => name)).toEqual([
      'one',
      'two',
      'one',
    ])
  })
})
