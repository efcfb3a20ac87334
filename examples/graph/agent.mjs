// #region agent
import { agentNode, END, graph, messages, START, scripted, state, tool } from '@sluice/core'
import { z } from 'zod'

const Conversation = state({ messages: messages() })

const weather = tool('weather', {
  description: 'The weather in a city.',
  input: z.object({ city: z.string() }),
  run: ({ city }) => ({ city, sky: 'sunny' }),
})

// A scripted model answers from a list; with a key, use any model of the host.
const model = scripted([{ tool_calls: [{ name: 'weather', arguments: { city: 'Bern' } }] }, 'It is sunny in Bern.'])

const helper = agentNode('helper', Conversation, { model, tools: [weather], system: 'You are brief.' })

export const talk = graph('talk', Conversation).edge(START, helper).edge(helper, END).check()
// #endregion
