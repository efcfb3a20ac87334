import type { Command } from 'commander'
import { span, whole } from './values.ts'

const STORE = ['--store <file>', 'the file that keeps them (default: $SLUICE_STORE, or .sluice/threads.db)'] as const
const BRANCH = ['--branch <name>', 'a branch of the thread (default: main)'] as const

interface StoreFlags {
  readonly store?: string
}

export interface ListFlags extends StoreFlags {
  readonly json?: boolean
}

export interface LineFlags extends ListFlags {
  readonly branch?: string
}

export interface ForkFlags extends StoreFlags {
  readonly branch?: string
  readonly at?: number
  readonly name?: string
}

export interface RemoveFlags extends StoreFlags {
  /** Milliseconds. */
  readonly olderThan?: number
}

export function addThreads(program: Command): void {
  const threads = program
    .command('threads')
    .summary('list, show, fork, remove and export threads')
    .description('Threads that runs were kept on with --thread.')
    .showHelpAfterError('(sluice threads --help says what there is)')

  threads
    .command('ls')
    .description('List threads, the last written first: how each stands, and how many questions it waits for.')
    .option('--json', 'as JSON')
    .option(...STORE)
    .action(async (flags: ListFlags) => {
      const { listThreads } = await import('./threads/list.ts')
      process.exitCode = await listThreads(flags)
    })

  threads
    .command('show')
    .argument('<id>', 'a thread')
    .description('Show what happened on a thread, a line for each record.')
    .option(...BRANCH)
    .option('--json', 'as JSON')
    .option(...STORE)
    .action(async (id: string, flags: LineFlags) => {
      const { showThread } = await import('./threads/show.ts')
      process.exitCode = await showThread(id, flags)
    })

  threads
    .command('fork')
    .argument('<id>', 'a thread')
    .description(
      'Begin a branch of a thread, and print its name. What is before is shared; what comes after is its own.',
    )
    .option('--branch <name>', 'the branch to fork (default: main)')
    .option('--at <seq>', 'the last record that is shared (default: the last one)', whole)
    .option('--name <name>', 'the name of the new branch (default: fork-1, or the next number that is free)')
    .option(...STORE)
    .action(async (id: string, flags: ForkFlags) => {
      const { forkThread } = await import('./threads/fork.ts')
      process.exitCode = await forkThread(id, flags)
    })

  threads
    .command('rm')
    .argument('[ids...]', 'threads')
    .description('Remove threads with all their branches. One that a run is on is left.')
    .option(
      '--older-than <time>',
      'those last written longer ago, such as 12h or 30d; of all, where no id is given',
      span,
    )
    .option(...STORE)
    .action(async (ids: readonly string[], flags: RemoveFlags) => {
      const { removeThreads } = await import('./threads/remove.ts')
      process.exitCode = await removeThreads(ids, flags)
    })

  threads
    .command('export')
    .argument('<id>', 'a thread')
    .description('Print every record of a thread as a line of JSON.')
    .option(...BRANCH)
    .option(...STORE)
    .action(async (id: string, flags: LineFlags) => {
      const { exportThread } = await import('./threads/show.ts')
      process.exitCode = await exportThread(id, flags)
    })
}

export interface RemoveKeptFlags extends StoreFlags {
  readonly policy?: string
}

export function addKept(program: Command): void {
  const kept = program
    .command('kept')
    .summary('list and remove what policies keep of principals')
    .description('What policies keep of those for whom runs are, on whichever thread.')
    .showHelpAfterError('(sluice kept --help says what there is)')

  kept
    .command('ls')
    .argument('[principal]', 'the id of one; without it, of all')
    .description('List what is kept, a line for each principal and policy.')
    .option('--json', 'as JSON')
    .option(...STORE)
    .action(async (principal: string | undefined, flags: ListFlags) => {
      const { listKept } = await import('./threads/kept.ts')
      process.exitCode = await listKept(principal, flags)
    })

  kept
    .command('rm')
    .argument('<principal>', 'the id of one')
    .description('Remove what is kept of a principal: the next call begins from nothing.')
    .option('--policy <type>', 'only what this policy keeps')
    .option(...STORE)
    .action(async (principal: string, flags: RemoveKeptFlags) => {
      const { removeKept } = await import('./threads/kept.ts')
      process.exitCode = await removeKept(principal, flags)
    })
}

export function addAsks(program: Command): void {
  program
    .command('asks')
    .summary('list the questions that threads wait for')
    .description('Every open question of every thread, the oldest first: who asks, and the command that answers it.')
    .option('--json', 'as JSON')
    .option(...STORE)
    .action(async (flags: ListFlags) => {
      const { listAsks } = await import('./threads/asks.ts')
      process.exitCode = await listAsks(flags)
    })
}
