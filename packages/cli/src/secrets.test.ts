import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { flowOf, folderOf, start, text, toolNode } from './testing/command.ts'
import { describeThreads } from './testing/threads.ts'

const said = [text('said')]

/** A server that refuses every request, and quotes the key it was sent, as some providers do. */
async function quoting(): Promise<string> {
  const http = createServer((request, response) => {
    response.writeHead(401, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: `Incorrect API key provided: ${request.headers.authorization}` } }))
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void http.close())
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1`
}

const GIVEN = ['flow.json', 'sluice.yaml', 'look']

/**
 * Runs the flow of a folder with a thread, all events and a decision log; gives back all that was printed and written but the
 * store's own files, in which SQLite may leave what was deleted.
 */
async function everything(folder: string, flags: readonly string[], env: object = {}): Promise<string> {
  const at = (name: string) => join(folder, name)
  const kept = ['--store', at('threads.db')]
  const all = { ...process.env, ...env }
  const what = ['--thread', 't', '--events', '--decisions', at('decisions.jsonl')]
  const run = await start(['run', at('flow.json'), ...what, ...kept, ...flags], all).ended
  const shown = await start(['threads', 'show', 't', '--json', ...kept], all).ended
  const files = readdirSync(folder).filter((name) => !GIVEN.includes(name) && !name.startsWith('threads.db'))
  expect(files).toEqual(['decisions.jsonl'])
  const written = files.map((name) => readFileSync(at(name), 'utf8'))
  expect(run.stdout).toContain('run_end')
  expect(shown.stdout).not.toBe('')
  return [run.stdout, run.stderr, shown.stdout, shown.stderr, ...written].join('\n')
}

describeThreads('what may not leave stands in no event, no record, no log and no line of a terminal:', () => {
  it('the key of a model, though its provider quotes it', async () => {
    const llm_config = {
      component_type: 'OpenAiCompatibleConfig',
      id: 'm',
      name: 'm',
      model_id: 'small',
      url: await quoting(),
      api_key: '$SLUICE_TEST_KEY',
    }
    const ask = { component_type: 'LlmNode', prompt_template: 'Hello', llm_config }
    const rule = 'policies:\n  - { rule: r, seam: modelCall.after, when: "false", verdict: fail, reason: no }\n'
    const folder = folderOf({ 'flow.json': flowOf({ nodes: { ask } }), 'sluice.yaml': rule })
    const all = await everything(folder, ['--policies', join(folder, 'sluice.yaml')], { SLUICE_TEST_KEY: 'KEY-MARKER' })
    expect(all).toContain('401')
    expect(all).not.toContain('KEY-MARKER')
  })

  it('a result that a policy withholds', async () => {
    const folder = folderOf({
      'flow.json': flowOf({ nodes: { look: toolNode('look', [], said) }, outputs: said }),
      look: '#!/bin/sh\necho \'{"said":"RESULT-MARKER"}\'\n',
      'sluice.yaml':
        'policies:\n  - { rule: r, seam: toolCall.after, when: outcome.ok, verdict: reject, reason: withheld }\n',
    })
    const all = await everything(folder, ['--tools-dir', folder, '--policies', join(folder, 'sluice.yaml')])
    expect(all).toContain('withheld')
    expect(all).not.toContain('RESULT-MARKER')
  })
})
