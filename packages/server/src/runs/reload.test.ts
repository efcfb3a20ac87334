import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MemoryStore } from '@sluice/core'
import { createRuntime, memoryRunLog, type RunLog } from '@sluice/host'
import { expect, it, onTestFinished, vi } from 'vitest'
import { Flows } from '../flows/flows.ts'
import { flowOf, text, toolNode, WAITING_TOOL } from '../testing/documents.ts'
import { builtRuntime } from '../testing/plugin-runtime.ts'
import { folderOf } from '../testing/served.ts'
import { Runs } from './runs.ts'

const plugins = builtRuntime()
const said = [text('said')]
const parts = { inputs: said, outputs: said }
const FILES = {
  'flows/pay.json': flowOf({ name: 'pay', nodes: { pay: toolNode('pay', said, said) }, ...parts }),
  'flows/late.json': flowOf({
    name: 'late',
    nodes: { wait: toolNode('wait', said, said), pay: toolNode('pay', said, said) },
    ...parts,
  }),
  'tools/wait': WAITING_TOOL,
  'till.json': {
    name: 'till',
    version: '1.0.0',
    components: [{ componentType: 'Pay' }],
    tools: [{ name: 'pay', componentType: 'Pay', inputSchema: { type: 'object' } }],
  },
  // Says which process it is, as it starts and with each payment.
  'till.mjs': `
    import { appendFileSync } from 'node:fs'
    appendFileSync(new URL('pids', import.meta.url), process.pid + '\\n')
    serve({ Pay: {} }, { tools: { pay: ({ said }) => ({ said: said + ' by ' + process.pid }) } })`,
}

/** A policy that marks what is paid. */
const marking = (mark: string) =>
  `policies: [{ rule: mark, seam: toolCall.before, when: '!input.said.endsWith("${mark}")', verdict: modify, input: { said: '\${input.said}${mark}' } }]`

/** Runs on a machine whose tool `pay` is a plugin's. */
async function machine(log: RunLog = memoryRunLog()) {
  const folder = folderOf({ ...FILES, 'sluice.yaml': marking('a') })
  const at = (name: string) => join(folder, name)
  const runtime = await createRuntime({
    policies: at('sluice.yaml'),
    plugins: [at('till.json')],
    toolsDir: at('tools'),
    store: new MemoryStore(),
    runtime: plugins,
  })
  onTestFinished(() => runtime.close())
  const runs = new Runs({ runtime, log, flows: await Flows.load(runtime, at('flows')) })
  const begin = (name: string) =>
    runs.begin({
      owner: '',
      by: { kind: 'local', id: 'local', scopes: [] },
      flow: { name },
      begun: { kind: 'start', inputs: { said: 'ten' } },
    })
  const resultOf = async (id: string) => {
    const { result, error } = (await runs.ended(id)).ending
    return result ?? error
  }
  const pids = () => (existsSync(at('pids')) ? readFileSync(at('pids'), 'utf8').trim().split('\n').map(Number) : [])
  return {
    runtime,
    begin,
    resultOf,
    pids,
    alive: () => pids().filter(isAlive),
    pay: async () => resultOf((await begin('pay')).id),
    ready: () => appendFileSync(at('tools/ready'), ''),
    mark: (mark: string) => writeFileSync(at('sluice.yaml'), marking(mark)),
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

it('leaves one process of a plugin after any number of reloads, and a run that is under way its own', async () => {
  const { runtime, begin, resultOf, pids, alive, pay, ready } = await machine()
  await pay()
  const [first] = pids()
  const late = await begin('late')
  onTestFinished(ready)
  for (const _ of [1, 2, 3]) {
    await runtime.reload()
    await pay()
  }
  const last = pids().at(-1)
  expect(new Set(pids()).size).toBe(4)
  await vi.waitFor(() => expect(alive()).toEqual([first, last]), { timeout: 10_000 })
  ready()
  expect(await resultOf(late.id)).toEqual({ said: `tena by ${first}` })
  await vi.waitFor(() => expect(alive()).toEqual([last]), { timeout: 10_000 })
  expect(await pay()).toEqual({ said: `tena by ${last}` })
})

it('runs a flow with the policies that it was compiled beside, when a reload comes before it begins', async () => {
  const log = memoryRunLog()
  const { runtime, pay, pids, mark } = await machine(log)
  await pay()
  const write = log.begin.bind(log)
  log.begin = async (...run) => {
    log.begin = write
    mark('b')
    await runtime.reload()
    await write(...run)
  }
  expect(await pay()).toEqual({ said: `tena by ${pids()[0]}` })
  expect(await pay()).toEqual({ said: `tenb by ${pids()[1]}` })
})
