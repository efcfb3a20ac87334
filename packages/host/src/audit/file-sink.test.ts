import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  AuditLogMiddleware,
  agentNode,
  createRuntime,
  END,
  graph,
  messages,
  START,
  scripted,
  state,
} from '@sluice/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fileSink } from '../index.ts'
import { builtFileSink } from '../testing/runtime.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-audit-'))
})
afterAll(() => rm(folder, { recursive: true }))

const lines = async (path: string) => (await readFile(path, 'utf8')).trimEnd().split('\n')

/** Its second line does not fit, whatever a block is; then there is room for another one. */
const FULL = `
const [path, module] = process.argv.slice(1)
const { truncateSync } = await import('node:fs')
const { fileSink } = await import(module)
const sink = fileSink(path)
await sink.write('a'.repeat(400))
const code = await sink.write('b'.repeat(2_000)).then(() => 'none', (error) => error.code)
truncateSync(path, 450)
await sink.write('c')
await sink.write('d')
await sink.close()
console.log(code)
`

describe('an audit log in a file', () => {
  const module = builtFileSink()

  it.skipIf(process.platform === 'win32')('has no line within another that was written in part', async () => {
    const path = join(folder, 'full.jsonl')
    const command = ['ulimit -f 1 && exec "$0" "$@"', process.execPath, '--input-type=module', '-e', FULL, path, module]
    expect(execFileSync('sh', ['-c', ...command], { encoding: 'utf8' })).toBe('EFBIG\n')
    expect(await lines(path)).toEqual(['a'.repeat(400), 'b'.repeat(49), 'c', 'd'])
  })

  it('has a line for each thing that happened once the run is over, and only its owner reads it', async () => {
    const path = join(folder, 'run.jsonl')
    const Chat = state({ messages: messages() })
    const agent = agentNode('agent', Chat, { model: scripted(['hello']) })
    //#region file
    const sink = fileSink(path)
    const middleware = [new AuditLogMiddleware({ sink })]
    const chat = graph('chat', Chat, { middleware }).edge(START, agent).edge(agent, END).check()
    //#endregion
    await createRuntime().run(chat, { messages: [{ role: 'user', content: 'hi' }] })
    expect((await lines(path)).map((line) => JSON.parse(line).type)).toEqual([
      'run_start',
      'model_call',
      'model_result',
      'run_end',
    ])
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    await sink.close()
  })

  it('has control characters as escapes, so that printing it is safe', async () => {
    const path = join(folder, 'controls.jsonl')
    const record = { tool: '\u001b[2J\u009b2J\u202e' }
    const sink = fileSink(path)
    await sink.write(JSON.stringify(record))
    await sink.close()
    const [line = ''] = await lines(path)
    expect(line).toBe(String.raw`{"tool":"\u001b[2J\u009b2J\u202e"}`)
    expect(JSON.parse(line)).toEqual(record)
  })

  it('keeps the order of lines that come together, and adds to what is there', async () => {
    const path = join(folder, 'order.jsonl')
    for (const part of [0, 500]) {
      const sink = fileSink(path)
      await Promise.all(Array.from({ length: 500 }, (_, i) => sink.write(String(part + i))))
      await sink.close()
    }
    expect(await lines(path)).toEqual(Array.from({ length: 1_000 }, (_, i) => String(i)))
  })

  it('has a line when its write has settled', async () => {
    const path = join(folder, 'now.jsonl')
    const sink = fileSink(path)
    await sink.write('one')
    expect(await lines(path)).toEqual(['one'])
    await sink.close()
  })

  it('has no line later of which it was told that it is lost', async () => {
    const path = join(folder, 'later', 'lost.jsonl')
    const sink = fileSink(path)
    const first = sink.write('one')
    // It comes while the first one is being written.
    const second = Promise.resolve().then(() => sink.write('two'))
    expect((await Promise.allSettled([first, second])).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await mkdir(join(folder, 'later'))
    await sink.write('three')
    await sink.close()
    expect(await lines(path)).toEqual(['three'])
  })

  it('rejects where it cannot be written', async () => {
    const sink = fileSink(join(folder, 'no', 'such', 'folder.jsonl'))
    await expect(sink.write('one')).rejects.toMatchObject({ code: 'ENOENT' })
    await sink.flush()
    await sink.close()
  })
})
