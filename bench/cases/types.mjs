// What the compiler takes for a project with 20 middleware, as an ES module and as a CommonJS one.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { row } from '../lib/measure.mjs'

const RUNS = 5
const MIDDLEWARE = 20
const GOAL_MS = 3_000
const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/** One middleware in a file of its own, with a hook of each kind, a state, and something kept. */
const middlewareOf = (n) => `import { middleware } from '@sluice/core'
import { z } from 'zod'
import { Chat } from './state.js'

export const own${n} = middleware({
  name: 'own-${n}',
  state: Chat,
  kept: { scope: 'turn', schema: z.object({ calls: z.number().default(0), seen: z.array(z.string()).default([]) }) },
  beforeNode: (ctx) => ctx.replace({ ...ctx.state, count${n}: ctx.state.count${n} + 1 }),
  afterNode: (ctx) => (ctx.kept.value.calls > 9 ? ctx.fail('enough') : undefined),
  onError: (ctx) => (ctx.attempt < 3 ? ctx.retry({ delayMs: 10 }) : undefined),
  beforeModel: (ctx) => (ctx.request.messages.length > 99 ? ctx.reject('too long') : ctx.replace({ temperature: 0 })),
  afterModel: (ctx) => ctx.replace({ ...ctx.response, content: ctx.response.content.trim() }),
  beforeTool(ctx) {
    ctx.kept.update(({ calls, seen }) => ({ calls: calls + 1, seen: [...seen, ctx.toolName] }))
    return ctx.kept.value.calls > 5 ? ctx.suspend({ question: 'go on?' }) : undefined
  },
  wrapTool: async (args, next) => {
    const outcome = await next({ ...args, n: ${n} })
    return outcome.ok ? outcome : { ok: true, value: 'failed' }
  },
})
`

const each = (write) => Array.from({ length: MIDDLEWARE }, (_, n) => write(n)).join('\n')

const state = `import { messages, state } from '@sluice/core'
import { z } from 'zod'

export const Chat = state({
  messages: messages(),
${each((n) => `  count${n}: z.number().default(0),`)}
})
`

const main = `import { agentNode, END, graph, START, scripted } from '@sluice/core'
import { Chat } from './state.js'
${each((n) => `import { own${n} } from './own${n}.js'`)}

const agent = agentNode('agent', Chat, { model: scripted(['hello']) })
export const chat = graph('chat', Chat, { middleware: [${each((n) => `own${n},`)}] }).edge(START, agent).edge(agent, END).check()
export const said = async (): Promise<number> => (await chat.run({})).state.count0
`

/** `type` is the package's: \`module\`, or \`commonjs\`, whose imports become calls of require. */
function projectOf(folder, type) {
  mkdirSync(join(folder, 'node_modules', '@sluice'), { recursive: true })
  symlinkSync(at('packages/core'), join(folder, 'node_modules', '@sluice', 'core'))
  symlinkSync(at('node_modules/zod'), join(folder, 'node_modules', 'zod'))
  const options = { strict: true, target: 'es2023', module: 'nodenext', outDir: 'out', types: [], skipLibCheck: true }
  const files = {
    'package.json': JSON.stringify({ type }),
    'tsconfig.json': JSON.stringify({ compilerOptions: options, include: ['*.ts'] }),
    // The floor: a state alone reads the same declarations.
    'floor.json': JSON.stringify({ compilerOptions: options, files: ['state.ts'] }),
    'state.ts': state,
    'main.ts': main,
  }
  for (let n = 0; n < MIDDLEWARE; n++) files[`own${n}.ts`] = middlewareOf(n)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
}

function compiled(project) {
  const start = performance.now()
  const tsc = at('node_modules/typescript/bin/tsc')
  const { status, stdout } = spawnSync(process.execPath, [tsc, '-p', project], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stdout)
  return performance.now() - start
}

/** What was compiled runs, so that a project that only looks right is found out. */
function runs(folder) {
  const script = `const { said } = await import('./out/main.js'); console.log(await said())`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: folder,
    encoding: 'utf8',
  })
  if (stdout.trim() !== '0') throw new Error(`the project came to ${stdout || stderr}`)
}

export default async function types() {
  const rows = []
  for (const type of ['module', 'commonjs']) {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-types-'))
    try {
      projectOf(folder, type)
      const took = []
      const floor = []
      for (let i = 0; i < RUNS; i++) {
        floor.push(compiled(join(folder, 'floor.json')))
        took.push(compiled(folder))
      }
      for (const list of [took, floor]) list.sort((a, b) => a - b)
      runs(folder)
      rows.push(
        row(`tsc, ${MIDDLEWARE} middleware`, type, took[RUNS >> 1], 'ms', {
          best: took[0],
          floor: floor[RUNS >> 1],
          goal: `≤ ${GOAL_MS}`,
          holds: took[0] <= GOAL_MS,
        }),
      )
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  return rows
}
