import { describe, expect, it } from 'vitest'
import { noting, says } from '../../testing/play.ts'
import { chain, errorOf, setUp } from '../../testing/threads.ts'
import { agentLoop, createRuntime, type NodeContext, policy, scripted } from '../index.ts'
import { replayThread } from './replay.ts'

const T = { thread: 't' }

/** A node that asks a person, does something once, and runs an agent that calls a tool; it says what came of each. */
function program({ fails = false } = {}) {
  const made = { once: 0, fails }
  const act = noting(({ text }) => {
    if (made.fails) throw new Error('act is down')
    return `did ${text}`
  })
  const model = scripted([{ tool_calls: [{ name: 'act', arguments: { text: 'it' } }] }, 'done'])
  const g = chain({
    a: async (_s, ctx: NodeContext) => {
      const said = (await ctx.ask('go', 'go on?')) as string
      const once = await ctx.once('count', () => ++made.once)
      const direct = await ctx.callTool(act, { text: 'first' })
      const { content } = await agentLoop(ctx, { model, messages: [], tools: [act] })
      return { log: [said, String(once), direct as string, content] }
    },
  })
  return { g, act, model, made }
}

/** The thread as it ran: asked, answered, and through. */
async function recorded({ g }: ReturnType<typeof program>, policies: Parameters<typeof createRuntime>[0] = {}) {
  const { store } = setUp()
  const runtime = createRuntime({ store, ...policies })
  await runtime.settle(g, {}, T)
  await errorOf(runtime.resume(g, 't', 'yes'))
  return { runtime, records: () => runtime.history('t') }
}

describe('a thread that is played again', () => {
  it('comes to what it came to, and nobody is asked, no model, no tool and no person', async () => {
    const ran = program()
    const { records } = await recorded(ran)
    const before = [ran.act.ran.length, ran.model.requests.length, ran.made.once]
    const { turns, waits } = await replayThread(ran.g, await records())
    expect(turns).toMatchObject([{ status: 'completed', state: { log: ['yes', '1', 'did first', 'done'] } }])
    expect(waits).toBeUndefined()
    expect([ran.act.ran.length, ran.model.requests.length, ran.made.once]).toEqual(before)
  })

  it('consults the policies it is given, which may be others, and hands on what was recorded as far as it goes', async () => {
    const ran = program()
    const { records } = await recorded(ran)
    const gate = policy({
      name: 'Gate',
      seams: {
        toolCall: {
          before: ({ input }) =>
            input.text === 'it'
              ? { action: 'reject', reason: 'not that' }
              : { action: 'modify', input: { text: 'other' } },
        },
      },
    })
    const { turns } = await replayThread(ran.g, await records(), { policies: [gate] })
    expect(turns).toMatchObject([{ status: 'completed', state: { log: ['yes', '1', 'did first', 'done'] } }])
    expect(turns[0]?.counts.decisions).toBe(2)
  })

  it('knows nothing of a call that was refused then, and is not now', async () => {
    const ran = program()
    const gate = says('Gate', { 'toolCall.before': { action: 'reject', reason: 'no' } })
    const { records } = await recorded(ran, { policies: [gate] })
    const [turn] = (await replayThread(ran.g, await records())).turns
    expect(turn).toMatchObject({ status: 'failed', error: { code: 'REPLAY_UNRECORDED', at: { tool: 'act' } } })
  })

  it('is continued as often as it was', async () => {
    const ran = program({ fails: true })
    const { runtime, records } = await recorded(ran)
    ran.made.fails = false
    await runtime.continue(ran.g, 't')
    const { turns } = await replayThread(ran.g, await records())
    expect(turns).toMatchObject([{ status: 'completed', state: { log: ['yes', '1', 'did first', 'done'] } }])
  })

  it('has its turns one after another, and what was changed by hand between them', async () => {
    const { store } = setUp()
    const g = chain({ a: (s) => ({ log: [`saw ${s.x}`] }) })
    const runtime = createRuntime({ store })
    await runtime.run(g, { x: 'one' }, T)
    await runtime.updateState(g, 't', { log: ['by hand'] })
    await runtime.run(g, { x: 'two' }, T)
    const { turns } = await replayThread(g, await runtime.history('t'))
    expect(turns.map(({ state }) => state.log)).toEqual([['saw one'], ['saw one', 'by hand', 'saw two']])
  })

  it('stops at a question that nobody had answered', async () => {
    const ran = program()
    const { runtime } = await recorded(ran)
    await runtime.settle(ran.g, {}, T)
    const { turns, waits } = await replayThread(ran.g, await runtime.history('t'))
    expect(turns.map(({ status }) => status)).toEqual(['completed', 'paused'])
    expect(waits).toEqual(['a:go'])
  })

  it('needs its beginning', async () => {
    const ran = program()
    const { runtime } = await recorded(ran)
    await runtime.compact(ran.g, 't')
    expect(await errorOf(replayThread(ran.g, await runtime.history('t')))).toMatchObject({ code: 'REPLAY_TRIMMED' })
  })
})
