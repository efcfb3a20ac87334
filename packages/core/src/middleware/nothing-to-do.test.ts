import { describe, expect, it } from 'vitest'
import { agentGraph, asking, calls, contents, numbered, strict, user } from '../../testing/agent.ts'
import { MemoryFiles } from '../../testing/files.ts'
import {
  createRuntime,
  FilesystemMemory,
  FilesystemSkills,
  gt,
  type Middleware,
  messageCount,
  recentMessages,
  type ScriptedReply,
  SummarizationMiddleware,
  scripted,
  TodoListMiddleware,
  ToolInterruptMiddleware,
  tool,
} from '../index.ts'
import { expectNeutral } from '../testing/index.ts'
import { readBy } from './reading.ts'

/** Built-in middleware that has nothing to do for the agent below. */
const IDLE: readonly (() => Middleware)[] = [
  () => new ToolInterruptMiddleware({ rules: [{ tool: 'send' }, { tool: 'look', match: gt('n', 1_000) }] }),
  () => new SummarizationMiddleware({ model: scripted([]), trigger: messageCount(99), recent: recentMessages() }),
  () => new TodoListMiddleware(),
  () => new FilesystemMemory({ files: new MemoryFiles(), scope: 'a' }),
  () => new FilesystemSkills({ roots: [new MemoryFiles()], nodes: ['another'] }),
]

const fails = tool('fails', {
  description: 'Fails.',
  input: readBy((value) => value as object),
  parameters: { type: 'object' },
  run: () => {
    throw new RangeError('out of range')
  },
})

const REPLIES: readonly ScriptedReply[] = [
  calls(['look', 1], ['fails', {}]),
  { tool_calls: [{ name: 'look', arguments: '{"n":' }] },
  calls(['look', { n: 'one' }], ['nothing', {}]),
  calls(['ask', { text: 'it' }], ['look', 2]),
  'done',
]

const conversation = (own: readonly Middleware[]) => ({
  graph: agentGraph({
    model: strict(REPLIES),
    tools: [...numbered('look').tools, fails, asking()],
    middleware: own,
  }),
  input: user('go'),
  answer: () => 'yes',
})

const broken = (own: readonly Middleware[]) => ({
  graph: agentGraph({
    model: scripted([calls(['look', 1]), new Error('503')]),
    tools: numbered('look').tools,
    middleware: own,
  }),
  input: user('go'),
})

describe('C1: built-in middleware with nothing to do', () => {
  it.each(IDLE.map((make) => ({ name: make().name, make })))(
    '$name changes nothing: not what tools, broken calls and questions come to, and not how a run fails',
    async ({ make }) => {
      for (const play of [conversation, broken]) await expectNeutral(play, [[make()]])
    },
  )

  it('changes nothing together either', async () => {
    for (const play of [conversation, broken]) await expectNeutral(play, [IDLE.map((make) => make())])
  })
})

describe('C2: a model that is of no class of ours', () => {
  const three = () => IDLE.slice(0, 3).map((make) => make())
  class Reply {
    readonly content = 'done'
    readonly finish_reason = 'stop'
    readonly provider = { its: 'own' }
  }
  it('is understood by what it answers, past three middleware', async () => {
    const agent = agentGraph({ model: { model: 'm', chat: async () => new Reply() }, middleware: three() })
    const { state } = await createRuntime().run(agent, user('go'))
    expect(contents(state.messages)).toEqual(['user: go', 'assistant: done'])
  })

  it('is told which field is wrong', async () => {
    const chat = async () => ({ content: 7, finish_reason: 'stop' }) as never
    const agent = agentGraph({ model: { model: 'm', chat }, middleware: three() })
    await expect(createRuntime().run(agent, user('go'))).rejects.toThrow(
      'the response of model "m" needs a string "content"',
    )
  })
})
