import { join } from 'node:path'
import { LLMock } from '@copilotkit/aimock'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { flowOf, folderOf, policyManifest, sluice, start, text, toolNode } from './testing/command.ts'

let server: LLMock
beforeEach(async () => {
  server = new LLMock({ port: 0 })
  await server.start()
})
afterEach(() => server.stop())

const modelConfig = () => ({
  component_type: 'OpenAiCompatibleConfig',
  id: 'm',
  name: 'm',
  model_id: 'gpt-test',
  url: `${server.url}/v1`,
  api_key: '$SLUICE_TEST_KEY',
})

/** A flow that asks a model behind an OpenAI-compatible API on this machine. */
function asking(files: Readonly<Record<string, string | object>> = {}): string {
  const ask = { component_type: 'LlmNode', prompt_template: 'Greet {{ who }}', llm_config: modelConfig() }
  return folderOf({
    'flow.json': flowOf({ nodes: { ask }, inputs: [text('who')], outputs: [text('generated_text')] }),
    ...files,
  })
}
const env = { ...process.env, SLUICE_TEST_KEY: 'secret-key' }
const run = (folder: string, ...more: readonly string[]) =>
  start(['run', join(folder, 'flow.json'), '--input', '{"who":"Ada"}', ...more], env).ended

describe('a flow that asks a model', () => {
  it('streams what it says to stderr, and prints the result', async () => {
    server.onMessage('Greet Ada', { content: 'Good morning, dear Ada, and welcome to the house.' })
    const { code, stdout, stderr } = await run(asking())
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ generated_text: 'Good morning, dear Ada, and welcome to the house.' })
    expect(stderr).toContain('Good morning, dear Ada')
    expect(stderr + stdout).not.toContain('secret-key')
  })

  it('is helped over a 429 by a policy, and each of its requests is seen (Z21)', async () => {
    server.nextRequestError(429, { message: 'slow down' })
    server.onMessage('Greet Ada', { content: 'Hello.' })
    const folder = asking({
      'busy.json': policyManifest('Busy', { modelCall: ['after'] }),
      'busy.mjs': `serve({ Busy: { modelCall: { after: ({ outcome }) =>
        !outcome.ok && outcome.error.message.startsWith('429') ? { action: 'retry' } : { action: 'pass' } } } })`,
    })
    const { code, stderr } = await run(folder, '--plugin', join(folder, 'busy.json'))
    expect(code).toBe(0)
    expect(stderr).toMatch(
      /modelCall\.after {2}policy "Busy" retries the model call of node "ask" in 0 ms, attempt 1 of 3: 429/,
    )
    expect(server.getRequests()).toHaveLength(2)
  })

  it('names the variable of its key when it is not set, and never the key', async () => {
    const { code, stderr } = await sluice('run', join(asking(), 'flow.json'), '--input', '{"who":"Ada"}')
    expect(code).toBe(1)
    expect(stderr).toMatch(/MODEL_KEY_MISSING .*SLUICE_TEST_KEY/)
  })
})

describe('--max-tool-rounds', () => {
  /** An agent whose model asks for a tool again and again. */
  function looping(): string {
    server.addFixture({ match: {}, response: { toolCalls: [{ id: 'c', name: 'look', arguments: '{}' }] } })
    const inner = {
      component_type: 'Agent',
      id: 'inner',
      name: 'inner',
      llm_config: modelConfig(),
      system_prompt: 'Look.',
      tools: [toolNode('look').tool],
    }
    const nodes = { agent: { component_type: 'AgentNode', agent: inner } }
    return folderOf({ 'flow.json': flowOf({ nodes, outputs: [text('result')] }), look: '#!/bin/sh\necho {}\n' })
  }
  const rounds = (folder: string, ...flags: readonly string[]) =>
    start(['run', join(folder, 'flow.json'), '--tools-dir', folder, ...flags], env).ended

  it('is how many rounds each agent has, and the error says how many that were (I7)', async () => {
    const { code, stderr } = await rounds(looping(), '--max-tool-rounds', '2')
    expect(code).toBe(1)
    expect(stderr).toMatch(/ROUNDS_SPENT .*has spent its 2 rounds/)
    expect(server.getRequests()).toHaveLength(2)
  })

  it('may be more than the 10 there are without it (I7)', async () => {
    const folder = looping()
    expect((await rounds(folder)).stderr).toMatch(/ROUNDS_SPENT .*its 10 rounds/)
    server.clearRequests()
    expect((await rounds(folder, '--max-tool-rounds', '12')).stderr).toMatch(/ROUNDS_SPENT .*its 12 rounds/)
    expect(server.getRequests()).toHaveLength(12)
  })

  it.each(['0', '-1', '2.5', 'unlimited', 'Infinity', ''])(
    'is a whole number of 1 or more, so that the ceiling cannot be lifted: "%s" (I7)',
    async (given) => {
      const { code, stdout } = await rounds(looping(), `--max-tool-rounds=${given}`)
      expect([code, stdout, server.getRequests()]).toEqual([2, '', []])
    },
  )
})
