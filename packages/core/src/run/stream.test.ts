import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { modelNode } from '../agent/nodes.ts'
import { messages } from '../chat/messages.ts'
import { node } from '../graph/node.ts'
import { END, START } from '../graph/route.ts'
import { state } from '../state/state.ts'
import { graph } from './graph.ts'
import { createRuntime } from './runtime.ts'

const Count = state({ n: z.number().default(0) })
const steps = 5_000

function counting(seen: { n: number }) {
  const step = node('step', Count, (s) => {
    seen.n = s.n
    return { n: s.n + 1 }
  })
  return graph('counting', Count)
    .edge(START, step)
    .when(step, (s) => s.n < steps, { then: step, otherwise: END })
    .check()
}

/** Lets everything that can go on go on. */
async function settle() {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}

describe('a slow reader of a stream', () => {
  const runtime = createRuntime({ limits: { maxIterations: 10_000 } })

  it('is waited for: a run does not go on for ever ahead of it', async () => {
    const seen = { n: 0 }
    const stream = runtime.stream(counting(seen), {})
    await stream.next()
    await settle()
    expect(seen.n).toBeGreaterThan(100)
    expect(seen.n).toBeLessThan(1_000)
    await stream.return?.()
  })

  it('gets every event in the end', async () => {
    let completed = 0
    for await (const event of runtime.stream(counting({ n: 0 }), {})) if (event.type === 'node_complete') completed++
    expect(completed).toBe(steps)
  })

  it('is waited for between the parts of a response too', async () => {
    let sent = 0
    const model = {
      model: 'endless',
      chat: async () => ({ content: '', finish_reason: 'stop' }),
      async *stream() {
        while (sent < 10_000) {
          sent++
          yield { content: 'word ' }
        }
      },
    }
    const Conversation = state({ messages: messages() })
    const answer = modelNode('answer', Conversation, { model })
    const stream = runtime.stream(graph('talk', Conversation).edge(START, answer).edge(answer, END).check(), {
      messages: [],
    })
    await stream.next()
    await settle()
    expect(sent).toBeLessThan(2_000)
    await stream.return?.()
  })
})

describe('a stream that is cancelled', () => {
  it.each([
    { name: 'for a reason', reason: new Error('enough') },
    { name: 'for none', reason: undefined },
  ])('goes on to its last event, $name', async ({ reason }) => {
    const stream = createRuntime({ limits: { maxIterations: 10_000 } }).stream(counting({ n: 0 }), {})
    const types: string[] = []
    for await (const { type } of stream) {
      types.push(type)
      if (type === 'node_complete') stream.cancel(reason)
    }
    expect(types.at(-1)).toBe('run_end')
    expect(types.length).toBeLessThan(steps)
    const { status, error } = await stream.outcome
    expect(status).toBe('cancelled')
    expect(error).toMatchObject({ code: 'RUN_CANCELLED' })
    expect((error as Error).cause).toBe(reason)
    stream.cancel()
    expect((await stream.outcome).status).toBe('cancelled')
  })

  it('by its caller’s signal as well is cancelled once, for the first reason', async () => {
    const controller = new AbortController()
    const stream = createRuntime().stream(counting({ n: 0 }), {}, { signal: controller.signal })
    stream.cancel(new Error('first'))
    controller.abort(new Error('second'))
    expect((await stream.outcome).error).toMatchObject({ code: 'RUN_CANCELLED', cause: { message: 'first' } })
  })
})

describe('what a node still does after its run has ended', () => {
  it('comes to nothing: its calls neither start nor settle', async () => {
    let late: (() => Promise<unknown>) | undefined
    const step = node('step', Count, (_s, ctx) => {
      late = () => ctx.callTool('gone', {})
      return {}
    })
    await createRuntime().run(graph('late', Count).edge(START, step).edge(step, END).check(), {})
    const settled = await Promise.race([
      late?.().then(
        () => 'settled',
        () => 'failed',
      ),
      settle().then(() => 'pending'),
    ])
    expect(settled).toBe('pending')
  })
})
