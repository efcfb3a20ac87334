import { readFileSync } from 'node:fs'
import { type JsonObject, messageOf, SluiceError } from '@sluice/core'
import type { Conversation } from '../chat/conversation.ts'
import { Lines } from '../chat/lines.ts'
import { Screen } from '../chat/screen.ts'
import { Talk } from '../chat/talk.ts'
import { EXIT, exitCodeOf, SIGNALS, type Signal } from '../exit.ts'
import { storeFile } from '../store/file.ts'
import { storeWhenUsed } from '../store/open.ts'
import type { ChatFlags } from './chat-options.ts'
import { readFlags, runsFor } from './flags.ts'
import { readJsonFlag } from './input.ts'
import { spokenBy } from './shown.ts'

/** Talks with a flow, here or behind a server, and says how the last turn ended, as an exit code. */
export async function chat(flow: string, flags: ChatFlags): Promise<number> {
  const given = (flags.input === undefined ? {} : readJsonFlag('--input', flags.input)) as JsonObject
  const screen = new Screen(flags.verbose)
  const conversation = flags.url === undefined ? await local(flow, flags, screen) : await remote(flow, flags, flags.url)
  const ended = { code: undefined as number | undefined }
  const lines = new Lines(() => interrupt())
  const talk = new Talk({ conversation, lines, screen, given })
  const interrupt = () => {
    const code = exitCodeOf('SIGINT')
    if (ended.code !== undefined) process.exit(ended.code)
    const comes = talk.interrupt()
    if (comes === 'now') process.exit(code)
    if (comes === 'leave') ended.code = code
  }
  endWith(talk, ended, interrupt)
  screen.line(`· thread ${conversation.thread}; /help says what there is`)
  try {
    const code = await talk.go()
    if (code === EXIT.paused) screen.line(`· it waits for an answer; --thread ${conversation.thread} goes on`)
    return ended.code ?? code
  } finally {
    lines.close()
    await conversation.close()
  }
}

/** Signals end the conversation in order; the second one ends the process. So does whoever reads the answers, by going. */
function endWith(talk: Talk, ended: { code: number | undefined }, interrupt: () => void): void {
  process.stdout.once('error', (error) => {
    ended.code = EXIT.failed
    talk.leave(error)
  })
  process.on('SIGINT', interrupt)
  for (const name of (Object.keys(SIGNALS) as Signal[]).filter((each) => each !== 'SIGINT')) {
    process.on(name, () => {
      if (ended.code !== undefined) process.exit(exitCodeOf(name))
      ended.code = exitCodeOf(name)
      talk.leave(new Error(`the process received ${name}`))
    })
  }
}

async function local(flow: string, flags: ChatFlags, screen: Screen): Promise<Conversation> {
  if (flags.tokenFile !== undefined) throw refuse('--token-file is for a server; name it with --url')
  const { openLocal } = await import('../chat/local.ts')
  const file = storeFile(flags.store)
  const host = { ...readFlags(flags), ...spokenBy(screen) }
  const conversation = await openLocal({
    flow,
    host,
    store: storeWhenUsed(file),
    thread: named(flags),
    ...runsFor(flags),
  })
  if (!file.named) screen.line(`· threads are kept in ${file.path}; --store names another file`)
  return conversation
}

const OF_THIS_MACHINE = [
  'store',
  'toolsDir',
  'policies',
  'plugin',
  'pluginConfig',
  'pluginEnv',
  'discoverTools',
  'decisions',
  'decisionsChain',
  'decisionsRequired',
  'maxIterations',
  'maxNodeAttempts',
  'maxToolRounds',
  'timeout',
  'principal',
] as const

/** @throws SluiceError `CLI_FLAGS` for what only the server itself is told. */
async function remote(flow: string, flags: ChatFlags, url: string): Promise<Conversation> {
  const foreign = OF_THIS_MACHINE.find((name) => flags[name] !== undefined)
  if (foreign !== undefined)
    throw refuse(`--${foreign.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} is the server's; leave it out`)
  const { openRemote } = await import('../chat/remote.ts')
  return openRemote({ url, flow, thread: named(flags), token: tokenOf(flags) })
}

function tokenOf({ tokenFile: file }: ChatFlags): string | undefined {
  if (file === undefined) return process.env.SLUICE_TOKEN || undefined
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new SluiceError('CLI_INPUT', `--token-file names a file that cannot be read: ${messageOf(error)}.`)
  }
}

const named = ({ thread }: ChatFlags): string | undefined => (typeof thread === 'string' ? thread : undefined)

const refuse = (why: string) => new SluiceError('CLI_FLAGS', `${why}.`)
