import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'
import { EFFECTS, effectsIn } from './scenario.mjs'

const folder = mkdtempSync(join(tmpdir(), 'sluice-processes-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const WORKER = fileURLToPath(new URL('worker.mjs', import.meta.url))

interface Life {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
}

/** Starts the worker; `ready` settles with its first line, `ended` when it is gone. */
function start(args: readonly string[], node = process.execPath) {
  const child = spawn(node, [WORKER, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  const ready = new Promise<void>((resolve) => {
    child.stdout.on('data', (data) => {
      out += data
      resolve()
    })
  })
  const ended = new Promise<Life>((resolve) => {
    child.on('close', (code, signal) => resolve({ code, signal, out }))
  })
  return { child, ready, ended }
}

const lastLine = ({ out }: Life): unknown => JSON.parse(out.trim().split('\n').at(-1) ?? 'null')

/** Paths of further node programs to try, as the machine has them. */
const others = (process.env.SLUICE_OTHER_NODES ?? '').split(':').filter((path) => path !== '')

describe('several processes on one SQLite file', () => {
  it('work on threads of their own, and one that is killed takes nothing from the others', async () => {
    const store = join(folder, 'four.db')
    const lives = ['a', 'b', 'c', 'd'].map((thread) => ({ thread, ...start([store, thread, join(folder, thread)]) }))
    const [first, ...rest] = lives
    await first?.ready
    first?.child.kill('SIGKILL')
    for (const { thread, ended } of rest) {
      expect(await ended).toMatchObject({ code: 0 })
      for (const effect of EFFECTS)
        expect([thread, effect, effectsIn(join(folder, thread)).get(effect)]).toEqual([thread, effect, 1])
    }
    await first?.ended
    expect(await start([store, 'a', join(folder, 'a')]).ended).toMatchObject({ code: 0 })
    for (const effect of EFFECTS) expect([effect, effectsIn(join(folder, 'a')).get(effect)]).toEqual([effect, 1])
  })

  it('E3: that resume one thread at the same moment: one wins, the other is told, and everything happens once', async () => {
    const [store, effects] = [join(folder, 'two.db'), join(folder, 'two')]
    expect(await start([store, 't', effects, '--until', 'paused']).ended).toMatchObject({ code: 0 })
    const both = await Promise.all([1, 2].map(() => start([store, 't', effects, '--once']).ended))
    const told = both.map(lastLine)
    expect(told).toContainEqual({ status: 'paused' })
    const refused = told.filter((line) => (line as { code?: string }).code !== undefined)
    for (const line of refused)
      expect(['THREAD_BUSY', 'THREAD_NOT_PAUSED', 'ASK_UNKNOWN']).toContain((line as { code: string }).code)
    expect(await start([store, 't', effects]).ended).toMatchObject({ code: 0 })
    for (const effect of EFFECTS) expect([effect, effectsIn(effects).get(effect)]).toEqual([effect, 1])
  })

  it.skipIf(others.length === 0)(
    'of different versions of Node take one thread from one to the next (set SLUICE_OTHER_NODES to try)',
    async () => {
      const [store, effects] = [join(folder, 'versions.db'), join(folder, 'versions')]
      const nodes = [process.execPath, ...others, process.execPath]
      for (const node of nodes)
        expect(await start([store, 't', effects, '--once'], node).ended).toMatchObject({ code: 0 })
      expect(await start([store, 't', effects]).ended).toMatchObject({ code: 0 })
      for (const effect of EFFECTS) expect([effect, effectsIn(effects).get(effect)]).toEqual([effect, 1])
    },
  )
})
