// #region child
import { agentNode, append, END, graph, graphNode, messages, node, START, scripted, state, tool } from '@sluice/core'
import { z } from 'zod'

const Topic = state({ topic: z.string().default(''), notes: append(z.string()) })

const research = node('research', Topic, async ({ topic }, ctx) => {
  const source = await ctx.ask('source', `Where should I look for ${topic}?`)
  return { notes: [`${topic}: ${source}`] }
})
export const researcher = graph('researcher', Topic).edge(START, research).edge(research, END).check()
// #endregion

// #region graphNode
const Report = state({ question: z.string().default(''), report: append(z.string()) })

const look = graphNode('look', Report, researcher, {
  in: ({ question }) => ({ topic: question }),
  out: ({ notes }) => ({ report: notes }),
})
export const one = graph('one', Report).edge(START, look).edge(look, END).check()
// #endregion

// #region agents
const split = node('split', Report, async ({ question }, ctx) => {
  const tasks = ['cost', 'risk'].map((topic) => ({ graph: researcher, input: { topic: `${question} ${topic}` } }))
  const results = await ctx.gather(ctx.spawn(tasks))
  return { report: results.flatMap(({ state }) => state.notes) }
})
export const several = graph('several', Report).edge(START, split).edge(split, END).check()
// #endregion

// #region tool
const asking = tool('research', {
  description: 'Looks something up.',
  input: z.object({ topic: z.string() }),
  run: async ({ topic }, ctx) => (await ctx.run(researcher, { topic })).notes,
})

const Conversation = state({ messages: messages() })
const model = scripted([{ tool_calls: [{ name: 'research', arguments: { topic: 'cost' } }] }, 'It is in the ledger.'])
const helper = agentNode('helper', Conversation, { model, tools: [asking] })
export const agent = graph('agent', Conversation).edge(START, helper).edge(helper, END).check()
// #endregion
