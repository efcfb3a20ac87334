import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { command, flowOf, folderOf, policyManifest, sluice, start, text, toolNode } from './testing/command.ts'
import { describeThreads, HANG, HELLO, notReady, paying, printedCommand, program, siteOf } from './testing/threads.ts'

/** Runs a command line that was printed, in a shell, as a person would who copied it. */
function paste(line: string, answer = '') {
  const typed = line.replace('…', answer)
  return spawnSync('sh', ['-c', `sluice() { '${process.execPath}' '${command}' "$@"; }\n${typed}`], {
    encoding: 'utf8',
  })
}

const lastJson = (stdout: string) => JSON.parse(stdout.trim().split('\n').at(-1) ?? '')

describeThreads('a run that a policy suspends', () => {
  it('pauses, prints the question, and exits 3; the tool has not run, and no node has failed (J1, J2, J3)', async () => {
    const site = paying({}, ['pay'])
    const paused = await site.run(...HELLO, '--thread', 't', '--events')
    expect(paused.code).toBe(3)
    expect(paused.stdout).not.toContain('node_error')
    expect(lastJson(paused.stdout)).toMatchObject({
      type: 'run_end',
      status: 'paused',
      asks: [{ key: 'pay:pay@Gate', askedBy: 'policy:Gate', nodeName: 'pay' }],
    })
    expect(paused.stderr).toMatch(/‖ paused\n {2}\? pay:pay@Gate {2}asked by policy "Gate", just now\n/)
    const payload = { tool: 'pay', arguments: { said: 'hello' }, risk: 'it costs money' }
    expect(paused.stderr).toContain(JSON.stringify(payload, null, 2).replaceAll('\n', '\n      '))
    expect(paused.stderr).toContain('an answer fits {"type":"object"')
    expect(site.ran()).toEqual(['first'])
  })

  it('has as its result that it waits, on one line of stdout', async () => {
    const paused = await paying({}, ['pay']).run(...HELLO, '--thread', 't')
    expect(JSON.parse(paused.stdout)).toMatchObject({ status: 'paused', thread: 't', asks: [{ key: 'pay:pay@Gate' }] })
  })

  it('goes on with the very command that it printed, in another process: the approved call runs as it was (Z5)', async () => {
    const site = paying({}, ['pay'])
    const paused = await site.run(...HELLO, '--thread', "it's mine", '--timeout', '60000')
    const line = printedCommand(paused)
    expect(line).toMatch(/--timeout 60000 .*--thread 'it'\\''s mine' --resume --answer 'pay:pay@Gate=…'$/)
    const done = paste(line, '{"approved":true}')
    expect(done).toMatchObject({ status: 0, stdout: '{"said":"hello"}\n' })
    expect(site.ran()).toEqual(['first', 'pay'])
  })

  it('does not print the value of a variable in that command: it may be a secret', async () => {
    const paused = await paying({}, ['pay']).run(
      ...HELLO,
      '--thread',
      't',
      '--plugin-env',
      'KEY=s3cret',
      '--plugin-env',
      'PATH',
    )
    expect(printedCommand(paused)).toContain(" --plugin-env 'KEY=…' --plugin-env PATH ")
    expect(paused.stderr + paused.stdout).not.toContain('s3cret')
  })

  it('refuses the call where the answer says so', async () => {
    const site = paying({}, ['pay'])
    await site.run(...HELLO, '--thread', 't')
    const done = await site.run('--thread', 't', '--resume', '--answer', '{"approved":false}')
    expect(done.code).toBe(1)
    expect(done.stderr).toContain('a person said no')
    expect(site.ran()).toEqual(['first'])
  })

  it('takes the answer for the result of a call that is never made (J5, S6)', async () => {
    const site = paying({}, ['pay'], { onAnswer: 'result', schema: { type: 'object', required: ['said'] } })
    await site.run(...HELLO, '--thread', 't')
    const done = await site.run('--thread', 't', '--resume', '--answer', 'pay:pay@Gate={"said":"paid by hand"}')
    expect(done).toMatchObject({ code: 0, stdout: '{"said":"paid by hand"}\n' })
    expect(site.ran()).toEqual(['first'])
  })

  it('asks about each call anew: an answer is used once, and the next turn asks again (Z4)', async () => {
    const site = paying({}, ['first', 'pay'])
    const approve = ['--thread', 't', '--resume', '--answer', '{"approved":true}']
    expect((await site.run(...HELLO, '--thread', 't')).stdout).toContain('first:first@Gate')
    expect((await site.run(...approve)).stdout).toContain('pay:pay@Gate')
    expect((await site.run(...approve)).code).toBe(0)
    expect(await site.run(...HELLO, '--thread', 't')).toMatchObject({ code: 3 })
    expect(site.ran()).toEqual(['first', 'pay'])
  })

  it('goes on with the default of a question whose time is over', async () => {
    const site = paying({}, ['pay'], { expiresInMs: 1, default: { approved: true } })
    await site.run(...HELLO, '--thread', 't')
    const late = await site.run('--thread', 't', '--resume', '--answer', '{"approved":false}')
    expect(late).toMatchObject({ code: 2, stderr: expect.stringMatching(/^ASK_EXPIRED [\s\S]*it has expired/m) })
    expect(printedCommand(late)).toMatch(/ --thread t --continue$/)
    expect(paste(printedCommand(late))).toMatchObject({ status: 0, stdout: '{"said":"hello"}\n' })
  })

  it('guards nothing where nothing is configured (S6)', async () => {
    expect(await paying().run(...HELLO, '--thread', 't')).toMatchObject({ code: 0, stdout: '{"said":"hello"}\n' })
  })

  it('fails without a thread, naming the policy, and says how to have one (J4)', async () => {
    const { folder } = paying({}, ['pay'])
    const settings = 'Gate={"guard":["pay"]}'
    const plugin = ['--plugin', join(folder, 'gate.json'), '--plugin-config', settings]
    const run = await sluice('run', join(folder, 'flow.json'), '--tools-dir', folder, ...plugin, ...HELLO)
    expect(run).toMatchObject({ code: 1, stdout: '' })
    expect(run.stderr).toMatch(/SUSPEND_NEEDS_THREAD .*"Gate".*\n.*With --thread the run pauses there/)
  })
})

describeThreads('an answer that is wrong', () => {
  it.each([
    {
      name: 'it does not fit what was asked',
      answer: '{"approved":"yes"}',
      says: /^ANSWER_INVALID .*approved: must be boolean/m,
    },
    {
      name: 'it is for a question that nobody asks',
      answer: 'pay:q={"approved":true}',
      says: /^ASK_UNKNOWN .*"pay:pay@Gate"/m,
    },
    { name: 'it is no JSON', answer: 'pay:pay@Gate=yes', says: /^CLI_ANSWER .*'pay:pay@Gate="yes"'/m },
  ])('is refused, and nothing has changed: $name', async ({ answer, says }) => {
    const site = paying({}, ['pay'])
    await site.run(...HELLO, '--thread', 't')
    const before = await site.sluice('threads', 'export', 't')
    const refused = await site.run('--thread', 't', '--resume', '--answer', answer)
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toMatch(says)
    expect(await site.sluice('threads', 'export', 't')).toEqual(before)
    expect(site.ran()).toEqual(['first'])
  })

  it('is shown the question and the command again', async () => {
    const site = paying({}, ['pay'])
    const paused = await site.run(...HELLO, '--thread', 't')
    const refused = await site.run('--thread', 't', '--resume', '--answer', '5')
    expect(printedCommand(refused)).toBe(printedCommand(paused))
  })

  it('that is none at all is refused with the question (J11)', async () => {
    const site = paying({}, ['pay'])
    const paused = await site.run(...HELLO, '--thread', 't')
    const refused = await site.run('--thread', 't', '--resume')
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^CLI_ANSWER .*--answer[\s\S]*it costs money/),
    })
    expect(printedCommand(refused)).toBe(printedCommand(paused))
  })
})

/** A flow whose agent asks for these tools in one round, then says what it was told. How often its model is asked stands in `ran`. */
function agentAsking(calls: readonly string[], guards: Readonly<Record<string, string>>) {
  const names = Object.keys(guards)
  const tools = calls.map((name) => ({ ...toolNode(name).tool, inputs: [text('said')], outputs: [text('said')] }))
  const llm = {
    component_type: 'StubModel',
    id: 'm',
    name: 'm',
    component_plugin_name: 'stub',
    component_plugin_version: '1',
  }
  const inner = {
    component_type: 'Agent',
    id: 'a',
    name: 'a',
    system_prompt: 'Pay.',
    llm_config: llm,
    tools,
    outputs: [text('result')],
  }
  const seam = (name: string) => (guards[name] === 'node' ? 'node' : 'toolCall')
  const folder = folderOf({
    'flow.json': flowOf({ nodes: { agent: { component_type: 'AgentNode', agent: inner } }, outputs: [text('result')] }),
    'stub.json': {
      ...policyManifest('StubModel', {}),
      name: 'stub',
      version: '1',
      components: [{ componentType: 'StubModel', kind: 'provider' }],
    },
    'stub.mjs': `import { appendFileSync } from 'node:fs'
serve({ StubModel: { chat({ messages }) {
  appendFileSync(new URL('ran', import.meta.url), 'model\\n')
  const told = messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
  if (told.length > 0) return { content: told.join(' '), finish_reason: 'stop' }
  const tool_calls = ${JSON.stringify(calls)}.map((name) => ({ id: name, name, arguments: JSON.stringify({ said: name }) }))
  return { content: '', finish_reason: 'tool_calls', tool_calls }
} } })`,
    'gates.json': {
      ...policyManifest('Gate', {}),
      name: 'gates',
      components: names.map((name) => ({
        componentType: name,
        kind: 'middleware',
        seams: { [seam(name)]: ['before'] },
      })),
    },
    'gates.mjs': `const gate = (guarded) => ({ before({ subject }, ctx) {
  if (guarded !== 'node' && subject.toolName !== guarded) return { action: 'proceed' }
  if (guarded === 'node' && subject.nodeName !== 'agent') return { action: 'proceed' }
  return ctx.answered === 'go' ? { action: 'proceed' } : { action: 'suspend', ask: { about: guarded } }
} })
serve({ ${names.map((name) => `${name}: { ${seam(name)}: gate('${guards[name]}') }`).join(', ')} })`,
    ...Object.fromEntries(calls.map((name) => [name, program()])),
  })
  const plugins = ['stub.json', 'gates.json'].flatMap((file) => ['--plugin', join(folder, file)])
  return siteOf(folder, plugins)
}

const RESULT = '{"result":"{\\"said\\":\\"look\\"} {\\"said\\":\\"pay\\"} {\\"said\\":\\"tell\\"}"}\n'
const go = (key: string) => ['--thread', 't', '--resume', '--answer', `${key}="go"`]

describeThreads('an agent that is suspended', () => {
  it('in a tool call asks its model no second time and makes no call twice (J5)', async () => {
    const site = agentAsking(['look', 'pay', 'tell'], { PayGate: 'pay' })
    expect(await site.run('--thread', 't')).toMatchObject({ code: 3 })
    const done = await site.run(...go('agent:pay@PayGate'))
    expect(done).toMatchObject({ code: 0, stdout: RESULT })
    expect([...site.ran()].sort()).toEqual(['look', 'model', 'model', 'pay', 'tell'])
  })

  it('in two calls of a round asks both, which may be answered one after the other (Z2)', async () => {
    const site = agentAsking(['look', 'pay', 'tell'], { PayGate: 'pay', TellGate: 'tell' })
    const paused = await site.run('--thread', 't')
    // Two processes are asked at once, and either may be the first to ask a person.
    const keys: string[] = JSON.parse(paused.stdout).asks.map(({ key }: { key: string }) => key)
    expect(keys.toSorted()).toEqual(['agent:pay@PayGate', 'agent:tell@TellGate'])
    for (const key of keys) expect(printedCommand(paused)).toContain(` --answer '${key}=…'`)
    expect(await site.run(...go('agent:tell@TellGate'))).toMatchObject({ code: 3 })
    const done = await site.run(...go('agent:pay@PayGate'))
    expect(done).toMatchObject({ code: 0, stdout: RESULT })
  })

  it('or by both answers at once', async () => {
    const site = agentAsking(['look', 'pay', 'tell'], { PayGate: 'pay', TellGate: 'tell' })
    await site.run('--thread', 't')
    const ambiguous = await site.run('--thread', 't', '--resume', '--answer', '"go"')
    expect(ambiguous).toMatchObject({ code: 2, stderr: expect.stringMatching(/^ANSWER_AMBIGUOUS .*2 questions/m) })
    const done = await site.run(...go('agent:pay@PayGate'), '--answer', 'agent:tell@TellGate="go"')
    expect(done).toMatchObject({ code: 0, stdout: RESULT })
  })

  it('as a node runs when it is answered, and its gate is not satisfied by the answer to another (J7, Z1, Z3)', async () => {
    const site = agentAsking(['look', 'pay', 'tell'], { AgentGate: 'node', PayGate: 'pay' })
    const door = await site.run('--thread', 't')
    expect(JSON.parse(door.stdout).asks).toMatchObject([{ key: 'agent@AgentGate', nodeName: 'agent' }])
    expect(site.ran()).toEqual([])
    const inside = await site.run(...go('agent@AgentGate'))
    expect(JSON.parse(inside.stdout).asks).toMatchObject([{ key: 'agent:pay@PayGate' }])
    expect(await site.run(...go('agent:pay@PayGate'))).toMatchObject({ code: 0, stdout: RESULT })
  })
})

describeThreads('a run that is cut off', () => {
  it('by a failure goes on with --continue, and what was done is not done again (J8, J9)', async () => {
    const site = paying({ pay: notReady("console.error('no luck'); process.exit(3)") })
    const failed = await site.run(...HELLO, '--thread', 't')
    expect(failed).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('no luck') })
    expect(printedCommand(failed)).toMatch(/ --thread t --continue$/)
    site.ready()
    expect(paste(printedCommand(failed))).toMatchObject({ status: 0, stdout: '{"said":"hello"}\n' })
    expect(site.ran()).toEqual(['first', 'pay', 'pay'])
  })

  it('by Ctrl+C exits 130 and says how to go on; a call that was under way is asked about, not made twice', async () => {
    const site = paying({ pay: notReady(HANG) })
    const run = site.start(...HELLO, '--thread', 't')
    await run.says('→ pay')
    run.signal('SIGINT')
    const cancelled = await run.ended
    expect(cancelled).toMatchObject({ code: 130, stderr: expect.stringContaining('RUN_CANCELLED') })
    site.ready()
    const paused = paste(printedCommand(cancelled))
    expect(paused.status).toBe(3)
    expect(JSON.parse(paused.stdout).asks).toMatchObject([{ key: 'pay:pay@engine', askedBy: 'engine' }])
    const done = await site.run('--thread', 't', '--resume', '--answer', 'pay:pay@engine="retry"')
    expect(done).toMatchObject({ code: 0, stdout: '{"said":"hello"}\n' })
    expect(site.ran().filter((name) => name === 'first')).toEqual(['first'])
  })

  it('by the end of its process is unfinished, and goes on from where it was', async () => {
    const site = paying({ pay: notReady(HANG) })
    const run = site.start(...HELLO, '--thread', 't')
    await run.says('→ pay')
    expect((await site.sluice('threads', 'ls')).stdout).toMatch(/^t {2}test {2}running {2}/)
    expect(await site.run(...HELLO, '--thread', 't')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^THREAD_BUSY/m),
    })
    expect(await site.sluice('threads', 'rm', 't')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^THREAD_BUSY/),
    })
    run.signal('SIGKILL')
    await run.ended
    expect((await site.sluice('threads', 'ls')).stdout).toMatch(/^t {2}test {2}unfinished {2}/)
    expect(await site.run('--thread', 't', '--continue')).toMatchObject({ code: 3 })
    const done = await site.run('--thread', 't', '--resume', '--answer', '{"result":{"said":"paid"}}')
    expect(done).toMatchObject({ code: 0, stdout: '{"said":"paid"}\n' })
    expect(site.ran().filter((name) => name === 'first')).toEqual(['first'])
  })
})

describeThreads('where a thread stands', () => {
  const start = [...HELLO, '--thread']
  it.each([
    { name: 'THREAD_UNKNOWN', guard: [], flags: ['--thread', 'u', '--continue'] },
    { name: 'THREAD_UNKNOWN', guard: [], flags: [...start, 't', '--branch', 'b'] },
    { name: 'THREAD_PAUSED', guard: ['pay'], flags: [...start, 't'] },
    { name: 'THREAD_PAUSED', guard: ['pay'], flags: ['--thread', 't', '--continue'] },
    { name: 'THREAD_NOT_PAUSED', guard: [], flags: ['--thread', 't', '--resume', '--answer', '1'] },
    { name: 'THREAD_FINISHED', guard: [], flags: ['--thread', 't', '--continue'] },
    { name: 'THREAD_NAME', guard: [], flags: [...start, ' '] },
  ])('refuses what does not go with it, and exits 2: $name for $flags', async ({ name, guard, flags }) => {
    const site = paying({}, guard)
    await site.run(...start, 't')
    const refused = await site.run(...flags)
    expect(refused).toMatchObject({ code: 2, stdout: '' })
    expect(refused.stderr).toMatch(new RegExp(`^${name} `, 'm'))
    expect(refused.stderr).not.toMatch(/^\s+at /m)
  })

  it('and was asked by a policy that is not installed now, it waits until it is (S6)', async () => {
    const site = paying({}, ['pay'])
    await site.run(...start, 't')
    const { folder, store } = site
    const bare = ['run', join(folder, 'flow.json'), '--tools-dir', folder, '--store', store, '--thread', 't']
    const refused = await sluice(...bare, '--resume', '--answer', '{"approved":true}')
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/^ASKER_MISSING .*"Gate"/m) })
  })
})

describe('flags of a thread that do not go together', () => {
  it.each([
    { name: '--resume without a thread (J12)', flags: ['--resume'], says: /CLI_FLAGS .*--resume needs a thread/ },
    { name: '--answer without a thread (J12)', flags: ['--answer', '1'], says: /CLI_FLAGS .*--answer needs a thread/ },
    { name: '--continue without a thread (J12)', flags: ['--continue'], says: /CLI_FLAGS .*--continue needs a thread/ },
    { name: '--branch without a thread', flags: ['--branch', 'b'], says: /CLI_FLAGS .*--branch needs a thread/ },
    { name: '--store without a thread', flags: ['--store', 'x.db'], says: /CLI_FLAGS .*--store needs a thread/ },
    {
      name: '--resume without an id',
      flags: ['--thread', '--resume', '--answer', '1'],
      says: /CLI_FLAGS .*--resume needs the id/,
    },
    {
      name: '--continue without an id',
      flags: ['--thread', '--continue'],
      says: /CLI_FLAGS .*--continue needs the id/,
    },
    {
      name: '--resume with an input',
      flags: ['--thread', 't', '--resume', '--answer', '1', ...HELLO],
      says: /CLI_FLAGS .*leave --input out/,
    },
    {
      name: '--continue with an input',
      flags: ['--thread', 't', '--continue', ...HELLO],
      says: /CLI_FLAGS .*leave --input out/,
    },
    {
      name: '--resume and --continue',
      flags: ['--thread', 't', '--resume', '--answer', '1', '--continue'],
      says: /CLI_FLAGS .*give one of them/,
    },
    {
      name: '--answer without --resume',
      flags: ['--thread', 't', '--answer', '1'],
      says: /CLI_FLAGS .*give --resume with it/,
    },
    {
      name: '--resume where there is no store',
      flags: ['--thread', 't', '--resume', '--answer', '1'],
      says: /CLI_STORE .*threads\.db/,
    },
    {
      name: '--continue where there is no store',
      flags: ['--thread', 't', '--continue'],
      says: /CLI_STORE .*threads\.db/,
    },
  ])('exit 2, and leave no file: $name', async ({ flags, says }) => {
    const folder = folderOf({ 'flow.json': flowOf() })
    const run = await start(['run', 'flow.json', ...flags], withoutStore, folder).ended
    expect(run).toMatchObject({ code: 2, stdout: '' })
    expect(run.stderr).toMatch(says)
    expect(existsSync(join(folder, '.sluice'))).toBe(false)
  })
})

const { SLUICE_STORE: _, ...withoutStore } = process.env

describeThreads('the file that keeps threads', () => {
  const plain = () => folderOf({ 'flow.json': flowOf() })

  it('is in the current folder where none is named, and that is said once', async () => {
    const folder = plain()
    const run = await start(['run', 'flow.json', '--thread', 't'], withoutStore, folder).ended
    expect(run.code).toBe(0)
    expect(run.stderr.match(/threads are kept in \.sluice\/threads\.db/g)).toHaveLength(1)
    expect(existsSync(join(folder, '.sluice', 'threads.db'))).toBe(true)
    const listed = await start(['threads', 'ls'], withoutStore, folder).ended
    expect(listed.stdout).toMatch(/^t {2}test {2}completed/)
  })

  it('is the one of the flag, else of SLUICE_STORE', async () => {
    const folder = plain()
    const env = { ...withoutStore, SLUICE_STORE: 'env.db' }
    expect((await start(['run', 'flow.json', '--thread', 'a'], env, folder).ended).stderr).not.toContain('kept in')
    await start(['run', 'flow.json', '--thread', 'b', '--store', 'flag.db'], env, folder).ended
    expect((await start(['threads', 'ls'], env, folder).ended).stdout).toMatch(/^a .*\n$/)
    expect((await start(['threads', 'ls', '--store', 'flag.db'], env, folder).ended).stdout).toMatch(/^b .*\n$/)
  })

  it('is not made by a run without a thread, nor by a call that is refused before it begins', async () => {
    const folder = plain()
    const at = (...args: string[]) => start(args, { ...withoutStore, SLUICE_STORE: 'env.db' }, folder).ended
    expect((await at('run', 'flow.json')).code).toBe(0)
    expect((await at('run', 'nowhere.json', '--thread', 't')).code).toBe(2)
    expect((await at('run', 'flow.json', '--thread', 't', '--input', '{"more":1}')).code).toBe(2)
    expect((await at('threads', 'ls')).code).toBe(2)
    expect((await at('asks')).code).toBe(2)
    expect(existsSync(join(folder, 'env.db'))).toBe(false)
  })

  it('keeps a thread under a new id where none is given, and says which', async () => {
    const folder = plain()
    const run = await start(['run', 'flow.json', '--thread'], withoutStore, folder).ended
    const [, id] = /^ {2}· thread ([0-9a-f-]{36})$/m.exec(run.stderr) ?? []
    expect((await start(['threads', 'ls'], withoutStore, folder).ended).stdout).toContain(`${id}  test  completed`)
  })

  it('that is no store is left as it is', async () => {
    const folder = folderOf({ 'flow.json': flowOf(), 'notes.txt': 'mine' })
    const run = await start(['run', 'flow.json', '--thread', 't', '--store', 'notes.txt'], withoutStore, folder).ended
    expect(run).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/^STORE_FOREIGN /m) })
  })
})
