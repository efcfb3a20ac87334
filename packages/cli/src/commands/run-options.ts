import type { Command } from 'commander'
import { collect, whole } from './values.ts'

/** The flags of `sluice run`, as read. */
export interface RunFlags {
  readonly input?: string
  readonly toolsDir?: string
  readonly policies?: string
  readonly plugin?: readonly string[]
  readonly pluginConfig?: readonly string[]
  readonly pluginEnv?: readonly string[]
  readonly discoverTools?: boolean
  readonly decisions?: string
  readonly decisionsChain?: boolean
  readonly decisionsRequired?: boolean
  readonly maxIterations?: number
  readonly maxNodeAttempts?: number
  readonly maxToolRounds?: number
  readonly timeout?: number
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
}

export function addRun(program: Command): void {
  const run = program
    .command('run')
    .argument('<flow>', 'an Agent Spec flow, JSON or YAML')
    .summary('run a flow')
    .showHelpAfterError('(sluice run --help says what there is)')
    .description('Run a flow. The result is printed to stdout as JSON; everything for people goes to stderr.')
    .option('--input <json>', 'the inputs of the flow, as JSON or @file')
    .option('--tools-dir <folder>', 'each executable file in it is a tool, named by its file name')
    .option('--policies <file>', 'install what this policy file lists (default: $SLUICE_POLICIES)')
    .option(
      '--plugin <file>',
      'install a plugin: a .json manifest, or a module to run in this process; policies are consulted in this order (repeatable)',
      collect,
    )
    .option('--plugin-config <type=json>', 'settings of a component type, as JSON or @file (repeatable)', collect)
    .option(
      '--plugin-env <name>',
      'let plugins see this variable, NAME or NAME=value; without it they see none (repeatable)',
      collect,
    )
    .option('--discover-tools', 'start plugins that say what tools they have only when they are asked, and ask them')
    .option('--decisions <file>', 'append a record of each half that policies are consulted about, as JSON lines')
    .option('--decisions-chain', 'each record names the hash of the one before it; sluice policy verify checks that')
    .option('--decisions-required', 'a record that cannot be written stops the run')
    .option('--max-iterations <n>', 'supersteps and granted node retries of one run (default: 50)', whole)
    .option('--max-node-attempts <n>', 'goes at a node each time it is arrived at (default: 3)', whole)
    .option('--max-tool-rounds <n>', 'rounds of an agent (default: 10)', whole)
    .option('--timeout <ms>', 'milliseconds that the run may take (default: 300000)', whole)
    .option('--events', 'print every event to stdout as a line of JSON; the last one has the result')
    .option(
      '--protocol <name>',
      'print events as this protocol renders them, a frame to a line; plugins bring protocols',
    )
    .option('--verbose', 'show every consultation, output and event')
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
      const { runFlow } = await import('./run.ts')
      process.exitCode = await runFlow(flow, flags)
    })
}
