import { z } from 'zod'
import {
  agentNode,
  append,
  createRuntime,
  END,
  graph,
  type Middleware,
  messages,
  middleware,
  node,
  START,
  scripted,
  state,
  tool,
} from '../src/index.ts'

/** What the tests of hooks share: an agent with one tool, and a graph of one node. */
export const Chat = state({ messages: messages(), log: append(z.string()) })

export const echo = tool('echo', {
  description: 'Says it again.',
  input: z.object({ text: z.string() }),
  run: ({ text }) => text,
})

export const twoTurns = () => scripted([{ tool_calls: [{ name: 'echo', arguments: { text: 'hello' } }] }, 'done'])

export function chat(own: readonly Middleware[], { model = twoTurns(), tools = [echo] } = {}) {
  const think = agentNode('think', Chat, { model, tools })
  return graph('chat', Chat, { middleware: own }).edge(START, think).edge(think, END).check()
}

export const ASKED = { messages: [{ role: 'user', content: 'say hello' }] } as const

export const Numbers = state({ n: z.number().default(0), log: append(z.string()) })

/** A graph of one node, `step`, which adds 1 and writes down what it saw. */
export function step(own: readonly Middleware[], run?: (n: number) => object) {
  const add = node('step', Numbers, ({ n }) => (run?.(n) ?? { n: n + 1, log: [`saw ${n}`] }) as { n: number })
  return graph('numbers', Numbers, { middleware: own }).edge(START, add).edge(add, END).check()
}

export const runtime = createRuntime()

export const failing = () => {
  throw new Error('the step fails')
}

/** Every hook, in both forms the same: it is told which hook it is. */
export const told = (name: string, tell: (said: string) => void) =>
  middleware({
    name,
    beforeGraph: () => void tell(`${name}.beforeGraph`),
    afterGraph: () => void tell(`${name}.afterGraph`),
    onRunEnd: () => void tell(`${name}.onRunEnd`),
    beforeNode: () => void tell(`${name}.beforeNode`),
    afterNode: () => void tell(`${name}.afterNode`),
    beforeRound: () => void tell(`${name}.beforeRound`),
    afterRound: () => void tell(`${name}.afterRound`),
    beforeModel: () => void tell(`${name}.beforeModel`),
    afterModel: () => void tell(`${name}.afterModel`),
    beforeTool: () => void tell(`${name}.beforeTool`),
    afterTool: () => void tell(`${name}.afterTool`),
  })
