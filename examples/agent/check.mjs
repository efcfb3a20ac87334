// Plays agents with models that need no key, and fails when one does not do what docs/agents.md says.
import assert from 'node:assert/strict'
import { createAgent, createRuntime, MemoryStore, RunInterruptedError, runAgent, scripted, tool } from '@sluice/core'
import { z } from 'zod'
import { desk, frugal, paid, strict, support, supportFor, triage } from './support.mjs'

const context = { customer: 'Ada' }

async function one() {
  const agent = supportFor('17')
  // #region run
  const { state } = await agent.run('Refund order 17, please', { context: { customer: 'Ada' } })
  console.log(state.finalText) // Your money is on its way.
  // #endregion
  assert.equal(state.finalText, 'Your money is on its way.')
  assert.deepEqual(paid.splice(0), ['17: 20'])
  assert.deepEqual(
    state.messages.map(({ role }) => role),
    ['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant'],
  )
}

async function paused() {
  const store = new MemoryStore()
  const runtime = createRuntime({ store })
  const agent = supportFor('991')
  // #region pause
  const { status, asks } = await runtime.run(agent, 'Refund order 991, please', { thread: 'support-42', context })
  console.log(status, asks[0].payload.question) // paused Pay 4200 back?

  const { state } = await runtime.resume(agent, 'support-42', true, { context })
  console.log(state.finalText) // Your money is on its way.
  // #endregion
  assert.deepEqual([status, asks.length, asks[0].payload.question], ['paused', 1, 'Pay 4200 back?'])
  assert.equal(state.finalText, 'Your money is on its way.')
  assert.deepEqual(paid.splice(0), ['991: 4200'])
}

async function refused() {
  const runtime = createRuntime()
  const agent = supportFor('991')
  // #region runAgent
  try {
    await runAgent(agent, 'Refund order 991, please', { runtime, thread: 'support-43', context })
  } catch (error) {
    if (!(error instanceof RunInterruptedError)) throw error
    const { state } = await runtime.resume(agent, error.thread, false, { context })
    console.log(state.finalText) // I am sorry, I cannot do that.
  }
  // #endregion
  const { state } = await runtime.stateAt(agent, 'support-43')
  assert.equal(state.finalText, 'I am sorry, I cannot do that.')
  assert.deepEqual(paid, [])
}

async function streamed() {
  const agent = supportFor('17')
  const said = []
  // #region stream
  for await (const event of agent.stream('Refund order 17, please', { context })) {
    if (event.type === 'token') said.push(event.text)
    if (event.type === 'tool_call') console.log(event.toolName, event.toolArgs)
  }
  // #endregion
  assert.equal(said.join(''), 'Your money is on its way.')
  assert.deepEqual(paid.splice(0), ['17: 20'])
}

async function output() {
  const model = scripted(['It is urgent!', '{"urgent":true,"topic":"refund"}'])
  // #region outputRun
  const { state } = await triage(model).run('I want my money back NOW')
  console.log(state.finalOutput) // { urgent: true, topic: 'refund' }
  // #endregion
  assert.deepEqual(state.finalOutput, { urgent: true, topic: 'refund' })
  assert.equal(model.requests.length, 2)
}

async function subAgent() {
  const runtime = createRuntime()
  const model = scripted([
    { tool_calls: [{ name: 'support', arguments: { task: 'Refund order 991' } }] },
    ({ messages }) => `Support says: ${messages.at(-1).content}`,
  ])
  const front = desk(model, supportFor('991'))
  const { asks } = await runtime.run(front, 'Refund order 991', { thread: 't', context })
  assert.match(asks[0].key, /^desk:support\/support:refund/)
  const { state } = await runtime.resume(front, 't', true, { context })
  assert.equal(state.finalText, 'Support says: Your money is on its way.')
  assert.deepEqual(paid.splice(0), ['991: 4200'])
}

async function errors() {
  const burns = tool('burns', {
    description: 'Fails.',
    input: z.object({}),
    run: () => {
      throw new Error('on fire')
    },
  })
  const { state } = await strict(scripted([{ tool_calls: [{ name: 'burns' }] }, 'sorry']), [burns]).run('hello')
  assert.equal(state.messages[2].content, 'burns failed (on fire). Try another way.')
}

async function migrated() {
  const runtime = createRuntime()
  const model = scripted([new Error('400 too long'), 'one', 'two', 'three'])
  const agent = createAgent({ model, middleware: [frugal], system: 'Be brief.' })
  const tell = () => runtime.settle(agent, 'hello', { thread: 't' })
  const ends = [await tell(), await tell(), await tell(), await tell()]
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['completed', 'completed', 'completed', 'failed'],
  )
  assert.equal(model.requests[1].messages.length, 1)
  assert.match(ends[3].error.message, /three model calls/)
}

for (const check of [one, paused, refused, streamed, output, subAgent, errors, migrated]) await check()
assert.throws(() => support(undefined), { code: 'AGENT_CONFIG' })
