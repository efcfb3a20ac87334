import {
  createRuntime,
  END,
  graph,
  type JsonObject,
  type KeptScope,
  MemoryStore,
  MiddlewareError,
  messageOf,
  node,
  type Policy,
  type PolicyOptions,
  policy,
  START,
  state,
  tool,
} from '@sluice/core'
import { jsonSchema } from '@sluice/flow'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { liveChildren } from '../child/child.ts'
import { load } from '../testing/plugin.ts'
import { loadBy } from '../testing/routes.ts'
import { builtRuntime } from '../testing/runtime.ts'

const runtime = builtRuntime()

const COUNT: JsonObject = {
  type: 'object',
  properties: { calls: { type: 'integer', default: 0 } },
}

interface Keeping {
  /** The source of a handler of `toolCall.before`. */
  readonly before: string
  readonly scope?: KeptScope
  readonly timeoutMs?: number
}

/** A policy that keeps a count, in this process. */
async function inProcess({ before, scope = 'turn' }: Keeping): Promise<Policy> {
  const seams: PolicyOptions['seams'] = { toolCall: { before: new Function(`return ${before}`)() } }
  return policy({ name: 'Gate', plugin: 'tested', kept: { scope, schema: await jsonSchema(COUNT) }, seams })
}

/** The same policy in another process. */
async function overTheWire({ before, scope = 'turn', timeoutMs }: Keeping): Promise<Policy> {
  const kept = { scope, schema: COUNT }
  const component = { componentType: 'Gate', kind: 'middleware', seams: { toolCall: ['before'] }, kept }
  const program = `serve({ Gate: { toolCall: { before: ${before} } } })`
  const { gate } = await load({ program, manifest: { components: [component] } }, { runtime, timeoutMs })
  return gate
}

/** The same policy in a module of this process. */
async function inModule({ before, scope = 'turn', timeoutMs }: Keeping): Promise<Policy> {
  const kept = { scope, schema: COUNT }
  const component = { componentType: 'Gate', kind: 'middleware', seams: { toolCall: ['before'] }, kept }
  const plugin = { handlers: `{ Gate: { toolCall: { before: ${before} } } }`, manifest: { components: [component] } }
  const { policies } = await loadBy('in process', plugin, { timeoutMs })
  return policies[0] as Policy
}

/** Counts what it lets through, refuses the fourth call, and waits in between so that calls at once could overtake it. */
const LIMIT = `async ({ input }, ctx) => {
  const { calls } = ctx.kept.value
  await new Promise((resolve) => setImmediate(resolve))
  if (ctx.revisit) return { action: 'proceed' }
  if (calls === 3) return { action: 'reject', reason: 'enough' }
  ctx.kept.update((kept) => ({ calls: kept.calls + 1 }))
  return { action: 'proceed' }
}`

/** Counts, and asks a person about the call. */
const ASKING = `(_shown, ctx) => {
  if (!ctx.revisit) ctx.kept.update(({ calls }) => ({ calls: calls + 1 }))
  if (ctx.answered === undefined) return { action: 'suspend', ask: { question: 'may it?', calls: ctx.kept.value.calls } }
  return { action: 'replace', value: [ctx.kept.value.calls, ctx.revisit] }
}`

const changing = (change: string) => `(_shown, ctx) => {
  ctx.kept.update(${change})
  return { action: 'proceed' }
}`

const S = state({ results: z.array(z.unknown()).default([]) })
const act = tool('act', { description: 'Acts.', input: z.object({ n: z.number() }), run: ({ n }) => n })

/** A graph whose one node calls the tool so many times at once. */
function calling(times: number) {
  const work = node('work', S, async (_state, ctx) => ({
    results: await Promise.all(
      Array.from({ length: times }, (_, n) => ctx.callTool(act, { n }).catch(() => 'refused')),
    ),
  }))
  return graph('calling', S).edge(START, work).edge(work, END).check()
}

const lastKept = async (store: MemoryStore) =>
  (await createRuntime({ store }).history('t')).flatMap((record) => record.kept ?? []).at(-1)

describe.each([
  { route: 'in process', make: inProcess },
  { route: 'in a module', make: inModule },
  { route: 'over the wire', make: overTheWire },
])('what a policy keeps, $route', ({ make }) => {
  it('starts from what the schema fills in, and stays until the turn is over', async () => {
    const one = createRuntime({ policies: [await make({ before: LIMIT })], store: new MemoryStore() })
    for (const _turn of [1, 2])
      expect((await one.run(calling(4), {}, { thread: 't' })).state.results).toEqual([0, 1, 2, 'refused'])
  })

  it('cannot be slipped past by calls made at once: one consultation has its turn at a time', async () => {
    const one = createRuntime({ policies: [await make({ before: LIMIT })] })
    const { results } = (await one.run(calling(20), {})).state
    expect(results.filter((result) => result !== 'refused')).toEqual([0, 1, 2])
  })

  it('holds over the turns of a thread with that scope, in whichever process they run', async () => {
    const store = new MemoryStore()
    const results: unknown[] = []
    for (const times of [2, 2, 1]) {
      const policies = [await make({ before: LIMIT, scope: 'thread' })]
      const { state } = await createRuntime({ policies, store }).run(calling(times), {}, { thread: 't' })
      results.push(...state.results)
    }
    expect(results).toEqual([0, 1, 0, 'refused', 'refused'])
    expect(await lastKept(store)).toMatchObject({ by: 'Gate', scope: 'thread', value: { calls: 3 } })
  })

  it('holds over the threads of a principal with that scope, in whichever process they run, and binds nobody else', async () => {
    const store = new MemoryStore()
    const by = async (id: string, thread: string) => {
      const policies = [await make({ before: LIMIT, scope: 'principal' })]
      const principal = { kind: 'token', id }
      return (await createRuntime({ policies, store }).run(calling(2), {}, { thread, principal })).state.results
    }
    expect(await Promise.all([by('ann', 't'), by('ann', 'u')]).then((all) => all.flat().sort())).toEqual([
      0,
      0,
      1,
      'refused',
    ])
    expect(await by('ann', 'v')).toEqual(['refused', 'refused'])
    expect(await by('bob', 'w')).toEqual([0, 1])
    expect(await store.kept.list('ann')).toEqual([{ by: 'Gate', principal: 'ann', text: '{"calls":3}' }])
  })

  it('is given once more, as it is by then, where another process has changed it meanwhile', async () => {
    const store = new MemoryStore()
    const read = store.kept.read.bind(store.kept)
    let raced = false
    // Between what is read for the first consultation and its answer.
    store.kept.read = (...of) => {
      const text = read(...of)
      if (raced) return text
      raced = true
      store.kept.write('Gate', 'ann', '{"calls":2}', undefined)
      return text
    }
    const policies = [await make({ before: LIMIT, scope: 'principal' })]
    const principal = { kind: 'token', id: 'ann' }
    const { state } = await createRuntime({ policies, store }).run(calling(2), {}, { principal })
    expect(state.results.filter((result) => result === 'refused')).toHaveLength(1)
    expect(store.kept.read('Gate', 'ann')).toBe('{"calls":3}')
  })

  it('is counted once for a call that waited for a person: the same consultation again is a revisit', async () => {
    const store = new MemoryStore()
    const again = async () => createRuntime({ policies: [await make({ before: ASKING })], store })
    const { asks } = await (await again()).run(calling(1), {}, { thread: 't' })
    expect(asks[0]?.payload).toMatchObject({ calls: 1 })
    expect((await (await again()).resume(calling(1), 't', 'yes')).state.results).toEqual([[1, true]])
  })

  it('is not written when it was not changed', async () => {
    const store = new MemoryStore()
    const policies = [await make({ before: `(_shown, ctx) => ctx.kept.value && { action: 'proceed' }` })]
    await createRuntime({ policies, store }).run(calling(1), {}, { thread: 't' })
    expect(await lastKept(store)).toBeUndefined()
  })

  it('is what update hands back, and what value is from then on', async () => {
    const before = `(_shown, ctx) => {
      const back = ctx.kept.update(() => ({ calls: 7 }))
      return { action: 'replace', value: [back, ctx.kept.value] }
    }`
    const { state } = await createRuntime({ policies: [await make({ before })] }).run(calling(1), {})
    expect(state.results).toEqual([[{ calls: 7 }, { calls: 7 }]])
  })

  it.each([
    { name: 'a value that the schema refuses', change: `() => ({ calls: 'many' })`, why: /calls: must be integer/ },
    { name: 'more than 64 KiB', change: `() => ({ text: 'x'.repeat(65_536) })`, why: /more than 65536 characters/ },
    { name: 'a promise', change: 'async () => ({ calls: 1 })', why: /Promise/ },
    { name: 'a map inside', change: '() => ({ calls: new Map() })', why: /Map|must be integer/ },
    { name: 'a number that is none', change: '() => ({ calls: NaN })', why: /NaN|must be integer/ },
    { name: 'nothing', change: '() => {}', why: /nothing|undefined|object/ },
  ])('may not be $name: that is the policy’s failure', async ({ change, why }) => {
    const policies = [await make({ before: changing(change) })]
    const { error } = await createRuntime({ policies }).settle(calling(1), {})
    expect(error).toBeInstanceOf(MiddlewareError)
    expect(messageOf(error)).toMatch(/policy "Gate" \(plugin tested\) failed at toolCall\.before/)
    expect(messageOf(error)).toMatch(why)
  })

  it('cannot be changed after the policy has answered: that error is its own', async () => {
    const before = `async ({ input }, ctx) => {
      if (input.n === 0) {
        globalThis.late = new Promise((resolve) => setTimeout(() => {
          try { ctx.kept.update(() => ({ calls: 9 })) } catch ({ code }) { resolve([code]) }
        }))
        return { action: 'proceed' }
      }
      return { action: 'replace', value: [...(await globalThis.late), ctx.kept.value] }
    }`
    const { state } = await createRuntime({ policies: [await make({ before })] }).run(calling(2), {})
    expect(state.results).toEqual([0, ['KEPT_LATE', { calls: 0 }]])
  })
})

describe('what a policy in another process keeps', () => {
  it('is not the process’s: that may die after each call', async () => {
    const dying = LIMIT.replace('const { calls }', 'setTimeout(() => process.exit(1), 20); const { calls }')
    const policies = [await overTheWire({ before: dying, scope: 'thread' })]
    const one = createRuntime({ policies, store: new MemoryStore() })
    const results: unknown[] = []
    for (let i = 0; i < 4; i++) {
      results.push(...(await one.run(calling(1), {}, { thread: 't' })).state.results)
      await vi.waitFor(() => expect(liveChildren()).toBe(0))
    }
    expect(results).toEqual([0, 0, 0, 'refused'])
  })

  it('is as it was when no verdict came: it goes back with one', async () => {
    const store = new MemoryStore()
    const throwing = `(_shown, ctx) => { ctx.kept.update(() => ({ calls: 1 })); throw new Error('broken') }`
    const policies = [await overTheWire({ before: throwing })]
    expect((await createRuntime({ policies, store }).settle(calling(1), {}, { thread: 't' })).status).toBe('failed')
    expect(await lastKept(store)).toBeUndefined()
  })

  it('is the next one’s to change when a consultation was given up', async () => {
    const before = `({ input }, ctx) => {
      if (input.n === 0) return new Promise(() => {})
      return { action: 'replace', value: ctx.kept.update(({ calls }) => ({ calls: calls + 1 })) }
    }`
    const child = calling(1)
    const first = node('first', S, async (_state, ctx) => ({
      results: [
        await ctx.run(child, {}, { timeoutMs: 100 }).catch(({ code }) => code),
        await ctx.callTool(act, { n: 1 }),
      ],
    }))
    const g = graph('g', S).edge(START, first).edge(first, END).check()
    const { state } = await createRuntime({ policies: [await overTheWire({ before })] }).run(g, {})
    expect(state.results).toEqual(['RUN_TIMED_OUT', { calls: 1 }])
  })

  it('is told to an author who reads it and declares nothing', async () => {
    const program = `serve({ Gate: { toolCall: { before: (_shown, ctx) => ctx.kept.value } } })`
    const { gate } = await load({ program }, { runtime })
    const { error } = await createRuntime({ policies: [gate] }).settle(calling(1), {})
    expect(messageOf(error)).toContain('the manifest declares none; give the component kept: { "scope"')
  })

  it.each([
    { name: 'a schema that {} does not fit', schema: { type: 'object', required: ['calls'] }, code: 'PLUGIN_KEPT' },
    { name: 'a schema that is none', schema: { type: 'number of calls' }, code: 'JSON_SCHEMA' },
  ])('is refused at load with $name', async ({ schema, code }) => {
    const kept = { scope: 'turn', schema }
    const component = { componentType: 'Gate', kind: 'middleware', seams: { toolCall: ['before'] }, kept }
    const loading = load({ program: '', manifest: { components: [component] } }, { runtime })
    await expect(loading).rejects.toMatchObject({ code, message: expect.stringContaining('"Gate" (plugin tested)') })
  })
})
