import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from '@sluice/host'
import { describe } from 'vitest'
import { type Ended, flowOf, folderOf, policyManifest, type RunningCommand, start, text, toolNode } from './command.ts'

/** A suite whose commands keep threads; skipped where there is no SQLite to keep them with. */
export function describeThreads(title: string, suite: () => void): void {
  const missing = whyNoStore()
  if (missing === undefined) describe(title, suite)
  else describe.skip(`${title} (skipped: ${missing})`, suite)
}

function whyNoStore(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-probe-'))
  try {
    sqliteStore(join(folder, 'probe.db')).close()
    return undefined
  } catch (error) {
    return (error as Error).message
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The program of a tool that writes its name to the file `ran` and then does this. */
export const program = (body = 'echo()'): string => `#!/usr/bin/env node
const { appendFileSync, existsSync } = require('node:fs')
const { basename, join } = require('node:path')
appendFileSync(join(__dirname, 'ran'), basename(__filename) + '\\n')
const ready = existsSync(join(__dirname, 'ready'))
const echo = () => process.stdin.pipe(process.stdout)
${body}
`

/** One that does this until the test says {@link Site.ready}, and then echoes. */
export const notReady = (body: string): string => program(`if (ready) echo(); else { ${body} }`)

/** Never ends by itself, but with whoever started it. */
export const HANG = 'const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 50)'

/** A gate of the tools that its setting `guard` names: it asks, and goes by what `approved` says, or takes the answer for the result. */
const GATE = `serve({ Gate: { toolCall: { before({ subject }, ctx) {
  const { guard = [], ask = {} } = ctx.component
  if (!guard.includes(subject.toolName)) return { action: 'proceed' }
  const schema = { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] }
  if (ctx.answered == null) return { action: 'suspend', ask: { risk: 'it costs money', schema, ...ask } }
  return ctx.answered.approved ? { action: 'proceed' } : { action: 'reject', reason: 'a person said no' }
} } } })`

const said = [text('said')]

/** Folder, flow and flags of a command that keeps a thread. */
export interface Site {
  readonly folder: string
  readonly store: string
  /** Which tools ran, in order. */
  ran(): readonly string[]
  /** From now on the tools are up to their work. */
  ready(): void
  /** Runs the flow, its tools, its gate and its store named, with more flags. */
  run(...flags: readonly string[]): Promise<Ended>
  start(...flags: readonly string[]): RunningCommand
  /** Another command on the same store. */
  sluice(...args: readonly string[]): Promise<Ended>
}

/** A flow that calls the tools `first` and `pay`, with a gate that asks about those that `guard` names. */
export function paying(
  files: Readonly<Record<string, string | object>> = {},
  guard: readonly string[] = [],
  ask = {},
): Site {
  const nodes = { first: toolNode('first', said, said), pay: toolNode('pay', said, said) }
  const folder = folderOf({
    'flow.json': flowOf({ nodes, inputs: said, outputs: said }),
    first: program(),
    pay: program(),
    'gate.json': policyManifest('Gate', { toolCall: ['before'] }),
    'gate.mjs': GATE,
    ...files,
  })
  return siteOf(folder, [
    '--plugin',
    join(folder, 'gate.json'),
    '--plugin-config',
    `Gate=${JSON.stringify({ guard, ask })}`,
  ])
}

/** The flow of such a folder, with these flags. */
export function siteOf(folder: string, more: readonly string[] = []): Site {
  const [store, log] = [join(folder, 'threads.db'), join(folder, 'ran')]
  const begin = (...flags: readonly string[]) =>
    start(['run', join(folder, 'flow.json'), '--tools-dir', folder, ...more, '--store', store, ...flags])
  return {
    folder,
    store,
    ran: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []),
    ready: () => writeFileSync(join(folder, 'ready'), ''),
    run: (...flags) => begin(...flags).ended,
    start: begin,
    sluice: (...args) => start([...args, '--store', store]).ended,
  }
}

export const HELLO = ['--input', '{"said":"hello"}'] as const

/** The command that a paused or cut off run prints. */
export const printedCommand = ({ stderr }: Ended): string => /^ *(sluice run .*)$/m.exec(stderr)?.[1] ?? ''
