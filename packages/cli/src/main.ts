import { Command, CommanderError } from 'commander'
import { addChat } from './commands/chat-options.ts'
import { addPolicy } from './commands/policy-options.ts'
import { addRun } from './commands/run-options.ts'
import { addServe } from './commands/serve-options.ts'
import { addAsks, addKept, addThreads } from './commands/threads-options.ts'
import { addToken } from './commands/token-options.ts'
import { addValidate } from './commands/validate-options.ts'
import { EXIT } from './exit.ts'

/** The command line. Each command's work is imported when it is chosen. */
export async function main(argv: readonly string[], version: string): Promise<void> {
  const program = new Command('sluice')
    .description('Run agents whose every step passes a gate.')
    .version(version, '--version', 'print the version')
    .showHelpAfterError('(sluice --help says what there is)')
    .exitOverride()
  // Whoever was to read may be gone; that is no reason to end in the middle, nor for a stack.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  addRun(program)
  addChat(program)
  addValidate(program)
  addPolicy(program)
  addThreads(program)
  addAsks(program)
  addKept(program)
  addServe(program, version)
  addToken(program)
  try {
    await program.parseAsync(argv)
  } catch (error) {
    process.exitCode = await codeOf(error)
  }
}

async function codeOf(error: unknown): Promise<number> {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.completed : EXIT.wrong
  const { printError } = await import('./render/error.ts')
  return printError(error)
}
