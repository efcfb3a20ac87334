import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LLMock } from '@copilotkit/aimock'
import { createServer, type Principal, type ServerOptions } from '@sluice/server'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  flowOf,
  folderOf,
  policyManifest,
  type RunningCommand,
  sluice,
  start,
  text,
  toolNode,
} from './testing/command.ts'
import { describeThreads, HANG, notReady, paying, type Site } from './testing/threads.ts'

const typedTo = (...args: readonly string[]): RunningCommand => start(['chat', ...args], process.env, undefined, 'pipe')

/** Types these lines, and ends the input. */
function lines(chat: RunningCommand, ...typed: readonly string[]) {
  chat.type(...typed)
  chat.endInput()
  return chat.ended
}

/** A server with that flow, and the address of it. */
async function served({ folder }: Site, options: ServerOptions = {}): Promise<string> {
  mkdirSync(join(folder, 'flows'), { recursive: true })
  writeFileSync(join(folder, 'flows', 'paying.json'), JSON.stringify(paid))
  const server = await createServer({
    flows: join(folder, 'flows'),
    toolsDir: folder,
    plugins: [join(folder, 'gate.json')],
    pluginConfig: ['Gate={"guard":["pay"]}'],
    ...options,
  })
  onTestFinished(async () => void (await server.close()))
  return (await server.listen({ port: 0 })).url
}

/** A flow that pays, where a policy asks before. */
const PLACES = [
  {
    name: 'in this process',
    begin: async ({ folder, store }: Site, ...more: readonly string[]) =>
      typedTo(join(folder, 'flow.json'), ...machine(folder), '--store', store, ...more),
  },
  {
    name: 'behind a server',
    begin: async (site: Site, ...more: readonly string[]) => typedTo('paying', '--url', await served(site), ...more),
  },
]
const said = [text('said')]
const paid = flowOf({
  nodes: { first: toolNode('first', said, said), pay: toolNode('pay', said, said) },
  inputs: said,
  outputs: said,
})
const machine = (folder: string) => [
  ...['--tools-dir', folder],
  ...['--plugin', join(folder, 'gate.json'), '--plugin-config', 'Gate={"guard":["pay"]}'],
]

describeThreads('a conversation', () => {
  describe.each(PLACES)('with a flow $name', ({ begin }) => {
    it('is a turn for each line; what is asked is answered at the prompt, and what policies did is shown', async () => {
      const site = paying()
      const chat = await begin(site, '--thread', 't')
      const { code, stdout, stderr } = await lines(
        chat,
        'hello',
        '/asks',
        'maybe',
        'yes',
        '//etc',
        'no',
        '/history',
        '/policies',
        '/nope',
        '/new',
        '/asks',
      )
      expect(stdout).toBe('hello\n')
      expect(code).toBe(1)
      expect(stderr).toContain('? pay:pay@Gate  asked by policy "Gate", just now')
      expect(stderr).toContain('"risk": "it costs money"')
      expect(stderr).toContain('CLI_ANSWER  type yes or no.')
      expect(stderr).toMatch(/! toolCall\.before {2}policy "Gate" refused the call of tool "pay": a person said no/)
      const [, history = ''] = /(› hello\n[\s\S]*?\n)[^\n]*Gate {2}enforce/.exec(stderr) ?? []
      expect(history).toMatch(
        /^› hello\n {2}\? pay:pay@Gate {2}\{"approved":true\} {2}by \S+\n {2}hello\n {2}› \/etc\n/,
      )
      expect(stderr).toContain('Gate  enforce  toolCall.before\n  there is no /nope; /help says what there is\n')
      expect(stderr).toMatch(/· thread [0-9a-f-]{36}\n {2}this thread waits for nothing\n$/)
      expect(site.ran()).toEqual(['first', 'pay', 'first'])
    })

    it('is stopped by Ctrl+C in its run, and goes on', async () => {
      const site = paying({ first: notReady(HANG) })
      const chat = await begin(site)
      chat.type('hello')
      await chat.says('✓ start')
      await expect.poll(() => site.ran(), { timeout: 10_000 }).toEqual(['first'])
      chat.signal('SIGINT')
      await chat.says('cancelled  RUN_CANCELLED')
      site.ready()
      const { code, stdout } = await lines(chat, 'again', 'yes')
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'again\n' })
    })
  })

  it('with a server is had by who brings a token; what they may not answer is left to others, and they go on', async () => {
    const site = paying()
    const callers: Readonly<Record<string, Principal>> = {
      'Bearer a': { kind: 'token', id: 'ann', scopes: ['run', 'answer'] },
      'Bearer b': { kind: 'token', id: 'bob', scopes: ['read', 'answer'] },
    }
    const url = await served(site, {
      authenticate: ({ headers }) => callers[headers.get('authorization') ?? ''],
    })
    const token = join(site.folder, 'token')
    writeFileSync(token, 'a\n')
    const chat = typedTo('paying', '--url', url, '--token-file', token)
    chat.type('hello', 'yes')
    await chat.says('ANSWER_FORBIDDEN  a policy asks about what you started')
    const headers = { authorization: 'Bearer b', 'content-type': 'application/json' }
    const { asks } = (await (await fetch(`${url}/v1/asks`, { headers })).json()) as { asks: { id: string }[] }
    const body = '{"answer":{"approved":true}}'
    await fetch(`${url}/v1/asks/${asks[0]?.id}/answer`, { method: 'POST', headers, body })
    const { code, stderr } = await lines(chat, '/asks', '/history')
    expect(stderr).toMatch(/this thread waits for nothing\n {2}› hello\n.* by person\n {2}hello\n$/)
    expect(code).toBe(1)
    const unknown = await sluice('chat', 'paying', '--url', url)
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('CALLER_UNKNOWN') })
  })

  it('that ends while it waits goes on with its thread: it asks at once', async () => {
    const site = paying()
    const [here] = PLACES
    const left = await lines((await here?.begin(site, '--thread', 't')) as RunningCommand, 'hello')
    expect(left.code).toBe(3)
    expect(left.stderr).toContain('--thread t goes on')
    const done = await lines((await here?.begin(site, '--thread', 't')) as RunningCommand, 'y')
    expect(done).toMatchObject({ code: 0, stdout: 'hello\n' })
  })

  it('is left by Ctrl+C at the prompt, when it comes twice', async () => {
    const chat = typedTo(join(folderOf({ 'flow.json': flowOf() }), 'flow.json'))
    await chat.says('/help says what there is')
    chat.signal('SIGINT')
    await chat.says('Ctrl+C once more leaves')
    chat.signal('SIGINT')
    expect((await chat.ended).code).toBe(130)
  })

  it('shows what a model says as it comes, and what a policy did to its call; sluice run -i is the same', async () => {
    const server = new LLMock({ port: 0 })
    await server.start()
    onTestFinished(() => server.stop().then(() => {}))
    server.nextRequestError(429, { message: 'slow down' })
    server.onMessage('Greet Ada', { content: 'Good morning,\n\tdear Ada.' })
    const llm = { component_type: 'OpenAiCompatibleConfig', id: 'm', name: 'm', model_id: 'gpt-test', url: server.url }
    const ask = { component_type: 'LlmNode', prompt_template: 'Greet {{ who }} in {{ tone }}', llm_config: llm }
    const folder = folderOf({
      'flow.json': flowOf({ nodes: { ask }, inputs: [text('who'), text('tone')], outputs: [text('generated_text')] }),
      'busy.json': policyManifest('Busy', { modelCall: ['after'] }, { stream: 'pass' }),
      'busy.mjs': `serve({ Busy: { modelCall: { after: ({ outcome }) => ({ action: outcome.ok ? 'pass' : 'retry' }) } } })`,
    })
    const flags = [
      '--plugin',
      join(folder, 'busy.json'),
      '--input',
      '{"tone":"prose"}',
      '--store',
      join(folder, 't.db'),
    ]
    const chat = start(['run', '-i', join(folder, 'flow.json'), ...flags], process.env, undefined, 'pipe')
    const { code, stdout, stderr } = await lines(chat, 'Ada')
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Good morning,\n\tdear Ada.\n' })
    expect(stderr).toMatch(/modelCall\.after {2}policy "Busy" retries the model call of node "ask"/)
    expect(stderr).toContain('Good morning,\\n\\tdear Ada.')
  })

  it.each([
    {
      name: 'a policy of its own for a server',
      args: ['chat', 'x', '--url', 'http://127.0.0.1:1', '--plugin', 'p'],
      says: '--plugin is the server',
    },
    {
      name: 'events in a conversation',
      args: ['run', '-i', 'x', '--events'],
      says: '--events is not for a conversation',
    },
    { name: 'a server that is not there', args: ['chat', 'x', '--url', 'http://127.0.0.1:1'], says: 'CLI_SERVER' },
  ])('does not begin with $name', async ({ args, says }) => {
    const { code, stderr } = await sluice(...args)
    expect(code).toBe(2)
    expect(stderr).toContain(says)
  })
})
