import { z } from 'zod'
import {
  agentNode,
  type ChatMessage,
  type ChatModel,
  type ChatRequest,
  createRuntime,
  END,
  type Graph,
  graph,
  MemoryStore,
  type Middleware,
  messages,
  type RuntimeOptions,
  type ScriptedReply,
  START,
  type StateOf,
  scripted,
  state,
  type Tool,
  tool,
  type UpdateFor,
} from '../src/index.ts'
import { Clock } from './clock.ts'
import { faultsOf } from './transcript.ts'

/** The state of graphs around one agent. */
export const Talk = state({ messages: messages() })
export type TalkGraph = Graph<StateOf<typeof Talk>, UpdateFor<typeof Talk>>

interface AgentParts {
  readonly model: ChatModel
  readonly tools?: readonly Tool[]
  readonly middleware?: readonly Middleware[]
  readonly system?: string
  readonly maxRounds?: number
}

/** A graph `chat` with one node, the agent `agent`. */
export function agentGraph({ middleware, ...parts }: AgentParts): TalkGraph {
  const agent = agentNode('agent', Talk, parts)
  return graph('chat', Talk, { middleware }).edge(START, agent).edge(agent, END).check()
}

/** What a user says. */
export const user = (content: string) => ({ messages: [{ role: 'user', content }] }) as const

/** A conversation in words: `role: content`. */
export const contents = (said: readonly ChatMessage[]) => said.map(({ role, content }) => `${role}: ${content}`)

/** A reply that calls tools, each with a number or with arguments. */
export const calls = (...made: readonly (readonly [name: string, args: number | object])[]): ScriptedReply => ({
  tool_calls: made.map(([name, args]) => ({ name, arguments: typeof args === 'number' ? { n: args } : args })),
})

/** A model that refuses a conversation as a strict provider would. */
export const strict = (replies: readonly ScriptedReply[], model?: string) => {
  const check = (reply: ScriptedReply) => (request: ChatRequest) => {
    const faults = faultsOf(request.messages)
    if (faults.length > 0) throw new Error(faults.join('; '))
    return reply
  }
  return scripted(replies.map(check), { model })
}

/** Tools with one argument `n` that note what they ran with, in order. */
export function numbered(...names: readonly string[]) {
  const ran: string[] = []
  const tools = names.map((name) =>
    tool(name, {
      description: `Does ${name}.`,
      input: z.object({ n: z.number() }),
      run: ({ n }) => {
        ran.push(`${name} ${n}`)
        return `${name} ${n} done`
      },
    }),
  )
  return { ran, tools }
}

/** A tool with one argument `text` that asks a person whether it may go on, and notes what it ran with. */
export function asking(name = 'ask') {
  const ran: string[] = []
  const made = tool(name, {
    description: 'Asks before it acts.',
    input: z.object({ text: z.string() }),
    run: async ({ text }, ctx) => {
      ran.push(text)
      return `${text}: ${await ctx.ask('go', `May ${text} go on?`)}`
    },
  })
  return Object.assign(made, { ran })
}

/** One process after another on one store and one clock; whatever is not in the store is new in each. */
export function processes(options: RuntimeOptions = {}) {
  const [store, clock] = [new MemoryStore(), new Clock()]
  return { store, clock, another: () => createRuntime({ store, platform: clock, ...options }) }
}
