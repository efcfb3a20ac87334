import type { Command } from 'commander'
import { type MachineFlags, machineOptions, PRINCIPAL } from './machine-options.ts'

/** The flags of `sluice chat`, as read. */
export interface ChatFlags extends MachineFlags {
  readonly input?: string
  readonly verbose?: boolean
  readonly principal?: string
  /** `true`: without an id. */
  readonly thread?: string | true
  readonly store?: string
  readonly url?: string
  readonly tokenFile?: string
}

export function addChat(program: Command): void {
  const command = program
    .command('chat')
    .argument('<flow>', 'an Agent Spec flow, JSON or YAML; with --url, or the name of one that the server has')
    .summary('talk with a flow, turn by turn')
    .showHelpAfterError('(sluice chat --help says what there is)')
    .description(
      'Talk with a flow. A line is the text that the flow takes, or its inputs as JSON, and runs a turn on the thread; what is asked on the way is answered at the prompt. Answers go to stdout, all else to stderr.',
    )
    .option('--input <json>', 'inputs that every turn has, as JSON or @file')
    .option('--thread <id>', 'go on with this thread (default: a new one)')
    .option('--store <file>', 'the file that keeps threads (default: $SLUICE_STORE, or .sluice/threads.db)')
    .option('--url <url>', 'talk with a flow of this server')
    .option('--token-file <file>', 'a file with the token for the server (default: $SLUICE_TOKEN)')
    .option(...PRINCIPAL)
    .option('--verbose', 'show every consultation, output and event')
  machineOptions(command)
    .addHelpText(
      'after',
      '\n/help at the prompt says what there is. Ctrl+C stops a run, and at the prompt twice leaves.\nExit codes, by the last turn: 0 completed, 1 failed, 3 it waits for an answer; 2 the call, a plugin or the document is wrong,\n128 and the signal where one ended it.',
    )
    .action(async (flow: string, flags: ChatFlags) => {
      const { chat } = await import('./chat.ts')
      process.exitCode = await chat(flow, flags)
    })
}
