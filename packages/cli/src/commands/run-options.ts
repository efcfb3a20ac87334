import type { Command } from 'commander'
import { type MachineFlags, machineOptions, PRINCIPAL } from './machine-options.ts'
import { collect } from './values.ts'

/** The flags of `sluice run`, as read. */
export interface RunFlags extends MachineFlags {
  readonly input?: string
  readonly events?: boolean
  readonly protocol?: string
  readonly verbose?: boolean
  /** `true`: without an id. */
  readonly thread?: string | true
  readonly branch?: string
  readonly resume?: boolean
  readonly answer?: readonly string[]
  readonly continue?: boolean
  readonly store?: string
  readonly interactive?: boolean
  readonly principal?: string
}

export function addRun(program: Command): void {
  const command = program
    .command('run')
    .argument('<flow>', 'an Agent Spec flow, JSON or YAML')
    .summary('run a flow')
    .showHelpAfterError('(sluice run --help says what there is)')
    .description('Run a flow. The result is printed to stdout as JSON; everything for people goes to stderr.')
    .option('--input <json>', 'the inputs of the flow, as JSON or @file')
  const run = machineOptions(command)
    .option('--events', 'print every event to stdout as a line of JSON; the last one has the result')
    .option(
      '--protocol <name>',
      'print events as this protocol renders them, a frame to a line; plugins bring protocols',
    )
    .option(...PRINCIPAL)
    .option('--verbose', 'show every consultation, output and event')
    .option('-i, --interactive', 'talk with it, as sluice chat does')
  run
    .optionsGroup('Threads, which may pause for an answer and go on after a failure:')
    .option('--thread [id]', 'run on this thread, and keep all that happens; without an id, on a new one')
    .option('--branch <name>', 'a branch of the thread (default: main)')
    .option('--resume', 'answer what the thread asks, with --answer, and go on')
    .option('--answer <answer>', '<key>=<json>, or JSON alone for the only question (repeatable)', collect)
    .option('--continue', 'go on after a failure, a crash or a cancel; what is done is not done again')
    .option('--store <file>', 'the file that keeps threads (default: $SLUICE_STORE, or .sluice/threads.db)')
    .addHelpText(
      'after',
      '\nExit codes: 0 completed, 1 failed, 2 the call, a plugin or the document is wrong, 3 paused,\n128 and the signal when cancelled (130 for Ctrl+C).',
    )
    .action(async (flow: string, flags: RunFlags) => {
      const { runFlow } = flags.interactive ? await import('./interactive.ts') : await import('./run.ts')
      process.exitCode = await runFlow(flow, flags)
    })
}
