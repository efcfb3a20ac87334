// Runs the graph on its own, then past a policy, and fails when either is not as the docs say.
import assert from 'node:assert/strict'
import { talk } from './agent.mjs'
import { refunds, runtime } from './refunds.mjs'

const { status, state } = await refunds.run({ amount: 80 })
assert.deepEqual(
  { status, state },
  { status: 'completed', state: { amount: 80, approved: false, log: ['checked', '80 needs a person'] } },
)

await assert.rejects(runtime.run(refunds, { amount: 20_000 }), { code: 'REFUSED', reason: 'no refund above 10,000' })

const answered = await talk.run({ messages: [{ role: 'user', content: 'How is the weather in Bern?' }] })
assert.deepEqual(
  answered.state.messages.map(({ role, content }) => `${role}: ${content}`),
  [
    'user: How is the weather in Bern?',
    'assistant: ',
    'tool: {"city":"Bern","sky":"sunny"}',
    'assistant: It is sunny in Bern.',
  ],
)
console.log('the graph runs, and the policy holds')
