import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { loadDriver } from '../../host/src/store/driver.ts'
import { flowOf, folderOf, policyManifest } from './testing/command.ts'
import { describeThreads, HELLO, paying, printedCommand, type Site, siteOf } from './testing/threads.ts'

const lines = (text: string) => text.trim().split('\n')

/** The file of a store with a thread that is through, and then one that waits for an answer; made once. */
let made: Promise<Buffer> | undefined

async function make(): Promise<Buffer> {
  const site = paying({}, ['pay'])
  await site.run(...HELLO, '--thread', 'done')
  await site.run('--thread', 'done', '--resume', '--answer', '{"approved":true}')
  await site.run(...HELLO, '--thread', 'waits')
  return readFileSync(site.store)
}

/** Such a store of this test. */
async function kept(): Promise<Site> {
  made ??= make()
  const site = paying({}, ['pay'])
  writeFileSync(site.store, await made)
  return site
}

describeThreads('sluice threads ls', () => {
  it('lists how each thread and branch stands, the last written first', async () => {
    const site = await kept()
    await site.sluice('threads', 'fork', 'waits', '--name', 'other')
    const { code, stdout } = await site.sluice('threads', 'ls')
    expect(code).toBe(0)
    expect(lines(stdout)).toEqual([
      expect.stringMatching(/^waits \(other\) {2}test {2}paused, 1 question {2}just now$/),
      expect.stringMatching(/^waits {10}test {2}paused, 1 question {2}(just now|.* ago)$/),
      expect.stringMatching(/^done {11}test {2}completed {11}/),
    ])
  })

  it('says the same as JSON', async () => {
    const site = await kept()
    const { stdout } = await site.sluice('threads', 'ls', '--json')
    expect(JSON.parse(stdout)).toEqual([
      {
        thread: 'waits',
        branch: 'main',
        graph: 'test',
        status: 'paused',
        asks: 1,
        writtenAt: expect.any(Number),
        head: expect.any(Number),
      },
      {
        thread: 'done',
        branch: 'main',
        graph: 'test',
        status: 'completed',
        asks: 0,
        writtenAt: expect.any(Number),
        head: expect.any(Number),
      },
    ])
  })
})

describeThreads('sluice threads show', () => {
  it('says what happened, a line for each record', async () => {
    const site = await kept()
    const { code, stdout } = await site.sluice('threads', 'show', 'waits')
    expect(code).toBe(0)
    expect(lines(stdout.replaceAll(/\d{4}-\S+Z/g, 'TIME'))).toEqual([
      '1  TIME  start     test  {"said":"hello"}',
      '2  TIME  begin     next: start',
      '3  TIME  step      through: start; next: first',
      '4  TIME  call      first  tool first  {"said":"hello"}',
      '5  TIME  step      through: first; next: pay',
      '6  TIME  ask       pay:pay@Gate  asked by policy:Gate  {"tool":"pay","arguments":{"said":"hello"},"risk":"it costs money"}',
      '7  TIME  end       paused  waits for pay:pay@Gate',
    ])
    const { stdout: done } = await site.sluice('threads', 'show', 'done')
    expect(done).toMatch(/ answer {4}pay:pay@Gate {2}\{"approved":true\} {2}by person\n/)
    expect(done).toMatch(/ end {7}completed {2}\{"said":"hello"\}\n$/)
  })

  it('exits 2 for a thread or branch that is not there', async () => {
    const site = await kept()
    for (const args of [['nowhere'], ['done', '--branch', 'b']])
      expect(await site.sluice('threads', 'show', ...args)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/^THREAD_UNKNOWN /),
      })
  })

  it('shows what is left of a damaged thread, which no run goes on with (J6)', async () => {
    const site = await kept()
    const database = new (loadDriver())(site.store)
    database.exec(`update log set body = '{"type":"st' where id % 16777216 = 4`)
    database.close()
    const { code, stdout } = await site.sluice('threads', 'show', 'waits')
    expect(code).toBe(0)
    expect(lines(stdout)[3]).toMatch(/^4 {2}cannot be read: /)
    const refused = await site.run('--thread', 'waits', '--resume', '--answer', '{"approved":true}')
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/^THREAD_DAMAGED .*record 4/m) })
  })
})

describeThreads('sluice threads export', () => {
  it('prints each record as a line of JSON, with its number', async () => {
    const site = await kept()
    const { stdout } = await site.sluice('threads', 'export', 'done')
    const records = lines(stdout).map((line) => JSON.parse(line))
    expect(records.map(({ seq }) => seq)).toEqual(records.map((_, i) => i + 1))
    expect(records.at(-1)).toMatchObject({ type: 'end', status: 'completed', result: { said: 'hello' } })
    const { stdout: shown } = await site.sluice('threads', 'show', 'done', '--json')
    expect(JSON.parse(shown)).toEqual(records)
  })
})

describeThreads('sluice threads fork', () => {
  it('begins a branch from a record, and prints its name; the branch goes on by itself', async () => {
    const site = await kept()
    expect(await site.sluice('threads', 'fork', 'done', '--at', '5')).toMatchObject({ code: 0, stdout: 'fork-1\n' })
    expect((await site.sluice('threads', 'ls')).stdout).toMatch(/^done \(fork-1\) {2}test {2}unfinished {2}/m)
    const paused = await site.run('--thread', 'done', '--branch', 'fork-1', '--continue')
    expect(JSON.parse(paused.stdout)).toMatchObject({ status: 'paused', thread: 'done', branch: 'fork-1' })
    expect(printedCommand(paused)).toMatch(/ --thread done --branch fork-1 --resume /)
    const done = await site.run('--thread', 'done', '--branch', 'fork-1', '--resume', '--answer', '{"approved":true}')
    expect(done.code).toBe(0)
    expect(site.ran()).toEqual(['pay'])
  })

  it.each([
    { args: ['nowhere'], says: /^THREAD_UNKNOWN / },
    { args: ['done', '--at', '99'], says: /^HISTORY_UNKNOWN / },
    { args: ['done', '--name', 'main'], says: /^BRANCH_EXISTS / },
    { args: ['done', '--at', '9'], says: /^FORK_ANSWERED / },
    { args: ['done', '--at', 'x'], says: /give a whole number of 1 or more/ },
  ])('exits 2 for $args', async ({ args, says }) => {
    const site = await kept()
    expect(await site.sluice('threads', 'fork', ...args)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(says),
    })
  })
})

describeThreads('sluice threads rm', () => {
  it('removes those that are named, and says which are not there', async () => {
    const site = await kept()
    expect(await site.sluice('threads', 'rm', 'nowhere', 'done')).toEqual({
      code: 2,
      stdout: 'removed done\n',
      stderr: expect.stringMatching(/^THREAD_UNKNOWN .*"nowhere"/),
    })
    expect((await site.sluice('threads', 'ls')).stdout).toMatch(/^waits .*\n$/)
  })

  it('removes those that nothing was written to for a while, all or of those named', async () => {
    const site = await kept()
    expect(await site.sluice('threads', 'rm', '--older-than', '1h')).toMatchObject({ code: 0, stdout: '' })
    const database = new (loadDriver())(site.store)
    database.exec('update line set written = written - 7200000')
    database.close()
    expect(await site.sluice('threads', 'rm', '--older-than', '1d')).toMatchObject({ code: 0, stdout: '' })
    expect(await site.sluice('threads', 'rm', 'waits', '--older-than', '1h')).toMatchObject({
      stdout: 'removed waits\n',
    })
    expect(await site.sluice('threads', 'rm', '--older-than', '1h')).toMatchObject({ stdout: 'removed done\n' })
  })

  it.each([
    { args: [], says: /^CLI_FLAGS .*--older-than/ },
    { args: ['--older-than', 'soon'], says: /such as 90s, 30m, 12h or 30d/ },
  ])('exits 2 for $args', async ({ args, says }) => {
    const { sluice } = paying()
    expect(await sluice('threads', 'rm', ...args)).toMatchObject({ code: 2, stderr: expect.stringMatching(says) })
  })
})

describeThreads('sluice asks', () => {
  it('lists every open question, the oldest first, with the command that answers it', async () => {
    const site = await kept()
    await site.run(...HELLO, '--thread', "it's new")
    const { code, stdout } = await site.sluice('asks')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^waits {2}pay:pay@Gate {2}asked in test by policy "Gate", (just now|.* ago)\n {4}\{\n[\s\S]*"it costs money"/,
    )
    expect(lines(stdout).filter((line) => line.includes('sluice run'))).toEqual([
      `    sluice run <flow> --store ${site.store} --thread waits --resume --answer 'pay:pay@Gate=…'`,
      `    sluice run <flow> --store ${site.store} --thread 'it'\\''s new' --resume --answer 'pay:pay@Gate=…'`,
    ])
  })

  it('says the same as JSON, and that there are none', async () => {
    const site = await kept()
    const { stdout } = await site.sluice('asks', '--json')
    expect(JSON.parse(stdout)).toMatchObject([
      { thread: 'waits', branch: 'main', graph: 'test', key: 'pay:pay@Gate', askedBy: 'policy:Gate', nodeName: 'pay' },
    ])
    await site.sluice('threads', 'rm', 'waits')
    expect(await site.sluice('asks')).toEqual({ code: 0, stdout: '', stderr: 'no thread waits for an answer\n' })
  })
})

describeThreads('a store that somebody has edited', () => {
  it.each(['{', '"x"', '[null, {}, {"key":5}]'])('is listed as far as it can be read: %s', async (asks) => {
    const site = await kept()
    const database = new (loadDriver())(site.store)
    database.exec(`update line set asks = '${asks}'`)
    database.close()
    expect((await site.sluice('threads', 'ls')).stdout).toMatch(
      /^waits {2}test {2}paused {5}.*\ndone {3}test {2}completed/,
    )
    expect(await site.sluice('asks')).toMatchObject({ code: 0, stdout: '' })
  })
})

const controls = 'x\u001b[31m\u009b2J\u202e'

describeThreads('a hostile store', () => {
  it('cannot reach the terminal with control characters, in names, questions or records', async () => {
    const folder = folderOf({
      'flow.json': { ...flowOf(), name: controls },
      'gate.json': policyManifest('Gate', { node: ['before'] }),
      'gate.mjs': `serve({ Gate: { node: { before: () => ({ action: 'suspend', ask: { [${JSON.stringify(controls)}]: ${JSON.stringify(controls)} } }) } } })`,
    })
    const site = siteOf(folder, ['--plugin', join(folder, 'gate.json')])
    const paused = await site.run('--thread', controls)
    expect(paused.code).toBe(3)
    const shown = await Promise.all([
      site.sluice('threads', 'ls'),
      site.sluice('threads', 'show', controls),
      site.sluice('threads', 'export', controls),
      site.sluice('asks'),
      site.sluice('threads', 'fork', controls, '--name', controls),
      site.sluice('threads', 'show', `${controls}nowhere`),
    ])
    for (const { stdout, stderr } of [paused, ...shown]) {
      expect(stdout + stderr).toContain('\\u001b[31m')
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
      expect(stdout + stderr).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    }
  })
})
