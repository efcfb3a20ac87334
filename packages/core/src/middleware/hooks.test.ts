import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Clock } from '../../testing/clock.ts'
import {
  agentNode,
  append,
  createRuntime,
  END,
  graph,
  Middleware,
  type ModelMiddlewareContext,
  messages,
  START,
  scripted,
  state,
  tool,
} from '../index.ts'

const Chat = state({ messages: messages(), log: append(z.string()) })

const echo = tool('echo', {
  description: 'Says it again.',
  input: z.object({ text: z.string() }),
  run: ({ text }) => text,
})

const turn = () => scripted([{ tool_calls: [{ name: 'echo', arguments: { text: 'hello' } }] }, 'done'])

function agent(own: readonly Middleware[], model = turn()) {
  const think = agentNode('think', Chat, { model, tools: [echo] })
  return graph('chat', Chat, { middleware: own }).edge(START, think).edge(think, END).check()
}

const ASKED = { messages: [{ role: 'user', content: 'say hello' }] } as const

/** Notes every hook that is called, as `name.hook`. */
class Recorder extends Middleware {
  readonly seen: string[]
  override readonly name: string
  constructor(name: string, seen: string[]) {
    super()
    this.name = name
    this.seen = seen
  }
  #note(hook: string) {
    this.seen.push(`${this.name}.${hook}`)
  }
  override beforeGraph() {
    this.#note('beforeGraph')
  }
  override afterGraph() {
    this.#note('afterGraph')
  }
  override onRunEnd() {
    this.#note('onRunEnd')
  }
  override beforeNode() {
    this.#note('beforeNode')
  }
  override afterNode() {
    this.#note('afterNode')
  }
  override beforeRound() {
    this.#note('beforeRound')
  }
  override afterRound() {
    this.#note('afterRound')
  }
  override beforeModel() {
    this.#note('beforeModel')
  }
  override afterModel() {
    this.#note('afterModel')
  }
  override beforeTool() {
    this.#note('beforeTool')
  }
  override afterTool() {
    this.#note('afterTool')
  }
}

describe('hooks of own middleware', () => {
  it('G2: before hooks run in list order, after hooks in reverse', async () => {
    const seen: string[] = []
    await createRuntime().run(agent([new Recorder('a', seen), new Recorder('b', seen)]), ASKED)
    expect(seen).toEqual([
      'a.beforeGraph',
      'b.beforeGraph',
      'a.beforeNode',
      'b.beforeNode',
      'a.beforeRound',
      'b.beforeRound',
      'a.beforeModel',
      'b.beforeModel',
      'b.afterModel',
      'a.afterModel',
      'a.beforeTool',
      'b.beforeTool',
      'b.afterTool',
      'a.afterTool',
      'b.afterRound',
      'a.afterRound',
      'a.beforeRound',
      'b.beforeRound',
      'a.beforeModel',
      'b.beforeModel',
      'b.afterModel',
      'a.afterModel',
      'b.afterNode',
      'a.afterNode',
      'b.afterGraph',
      'a.afterGraph',
      'b.onRunEnd',
      'a.onRunEnd',
    ])
  })

  it('take time, chance and hashes from the platform of the runtime', async () => {
    const platform = new Clock()
    const seen: unknown[] = []
    class Looks extends Middleware {
      override async beforeModel(ctx: ModelMiddlewareContext) {
        seen.push(ctx.platform.time(), await ctx.platform.sha256(''))
      }
    }
    await createRuntime({ platform }).run(agent([new Looks()], scripted(['done'])), ASKED)
    expect(seen).toEqual([platform.time(), expect.stringMatching(/^e3b0c442/)])
  })
})
