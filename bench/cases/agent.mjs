// An agent of many rounds: one model call and one tool call each, with messages of 1 KB.
import { agentNode, createRuntime, END, graph, messages, policy, START, state, tool } from '@sluice/core'
import { z } from 'zod'
import { interleaved, row } from '../lib/measure.mjs'

const Conversation = state({ messages: messages() })
const TEXT = 'x'.repeat(1_000)
const lookup = tool('lookup', { description: 'Looks up.', input: z.object({ q: z.string() }), run: () => TEXT })

/** Asks for the tool until the conversation holds enough rounds. */
function modelOf(rounds) {
  const call = {
    content: TEXT,
    finish_reason: 'tool_calls',
    tool_calls: [{ id: 'c', name: 'lookup', arguments: '{"q":"weather"}' }],
  }
  const answer = { content: TEXT, finish_reason: 'stop' }
  return { model: 'bench', chat: async ({ messages: said }) => (said.length > rounds * 2 ? answer : call) }
}

function agentOf(rounds) {
  const agent = agentNode('agent', Conversation, { model: modelOf(rounds), tools: [lookup] })
  return graph('agent', Conversation).edge(START, agent).edge(agent, END).check()
}

const limits = { maxToolRounds: 200 }
const plain = createRuntime({ limits })
const input = { messages: [{ role: 'user', content: 'go' }] }

const proceed = () => ({ action: 'proceed' })
const pass = () => ({ action: 'pass' })
const halves = { before: proceed, after: pass }
const watching = (count) =>
  createRuntime({
    limits,
    policies: Array.from({ length: count }, (_, i) =>
      policy({ name: `Noop${i}`, seams: { agentRound: halves, modelCall: halves, toolCall: halves } }),
    ),
  })

export default async function agent() {
  const [ten, hundred] = [agentOf(10), agentOf(100)]
  const twenty = watching(20)
  const took = await interleaved(
    {
      ten: () => plain.run(ten, input),
      hundred: () => plain.run(hundred, input),
      watched: () => twenty.run(ten, input),
    },
    { ops: 1, samples: 101, warmups: 60 },
  )
  const perRound = { early: took.ten.median / 10, late: (took.hundred.median - took.ten.median) / 90 }
  return [
    row('agent, 10 tool rounds of 1 KB', 'no policy', took.ten.median / 1_000, 'ms', {
      best: took.ten.best / 1_000,
      goal: '≤ 0.2',
      holds: took.ten.best <= 200,
    }),
    row('agent, a round', 'rounds 11 to 100 against 1 to 10', perRound.late / perRound.early, '×', {
      goal: '≤ 1.5',
      holds: perRound.late / perRound.early <= 1.5,
    }),
    row(
      'one no-op policy in process, a round',
      'all six halves (slope from 0 to 20)',
      (took.watched.median - took.ten.median) / 20 / 10,
      'µs',
    ),
  ]
}
