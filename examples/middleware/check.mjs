// An agent that sends mail, with middleware around it; fails when anything is not as the docs say.
import assert from 'node:assert/strict'
import { agentNode, END, graph, MemoryStore, messages, START, state, tool } from '@sluice/core'
import { play, recorder, scripted } from '@sluice/core/testing'
import { z } from 'zod'
import { askFirst, PrintSteps, quietHours, secondOpinion, spend } from './steps.mjs'

const Chat = state({ messages: messages() })
const input = { messages: [{ role: 'user', content: 'Tell Ada.' }] }

/** Sends one mail, then says so. */
function mailer(middleware, { sent = [], replies = turns } = {}) {
  const sendMail = tool('send_mail', {
    description: 'Sends a mail.',
    input: z.object({ to: z.string() }),
    run: ({ to }) => {
      sent.push(to)
      return `sent to ${to}`
    },
  })
  const agent = agentNode('agent', Chat, { model: scripted(replies), tools: [sendMail] })
  return graph('mailer', Chat, { middleware }).edge(START, agent).edge(agent, END).check()
}

const usage = (totalTokens) => ({ inputTokens: 0, outputTokens: totalTokens, totalTokens })
const turns = [
  { tool_calls: [{ name: 'send_mail', arguments: { to: 'ada@example.com' } }], usage: usage(40_000) },
  { content: 'Done.', usage: usage(20_000) },
]
const answerOf = ({ toolMessages }) => toolMessages[0]?.content

// #region test
const notes = recorder()
const { status } = await play(mailer([notes]), { input })
assert.equal(status, 'completed')
assert.ok(notes.trace.includes('beforeTool at agent'))
// #endregion

const printed = []
const log = console.log
console.log = (line) => printed.push(line)
await play(mailer([new PrintSteps()]), { input })
console.log = log
assert.deepEqual(printed, ['0: agent', 'mailer: completed'])

assert.equal(
  answerOf(await play(mailer([quietHours(() => true)]), { input })),
  'Refused: No mail at night. Draft it instead.',
)
assert.equal(answerOf(await play(mailer([quietHours(() => false)]), { input })), 'sent to [address]')

const store = new MemoryStore()
const much = () => mailer([spend], { replies: [{ content: 'much', usage: usage(60_000) }] })
assert.equal((await play(much(), { input, store })).status, 'completed')
const spent = await play(much(), { input, store })
assert.equal(spent.error.reason, '50,000 tokens are the budget of a thread')

const down = new Error('503 Service Unavailable: later')
const saved = await play(mailer([secondOpinion(scripted(['from the other']))], { replies: [down] }), { input })
assert.equal(saved.messages.at(-1).content, 'from the other')

for (const [yes, came] of [
  [true, ['ada@example.com']],
  [false, []],
]) {
  const sent = []
  const { asked } = await play(mailer([askFirst], { sent }), { input, answer: () => yes })
  assert.deepEqual(
    asked.map(({ key }) => key),
    ['agent:send_mail@AskFirst'],
  )
  assert.deepEqual(sent, came)
}
console.log('middleware stands where it should')
