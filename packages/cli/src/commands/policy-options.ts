import type { Command } from 'commander'
import { collect } from './values.ts'

/** What installs plugins, the same for each command. */
interface InstallFlags {
  readonly policies?: string
  readonly plugin?: readonly string[]
  readonly pluginConfig?: readonly string[]
  readonly pluginEnv?: readonly string[]
}

export interface ExplainFlags extends InstallFlags {
  readonly toolsDir?: string
  readonly json?: boolean
}

/** The commands for operators, a file each in `policy/`. */
export function addPolicy(program: Command): void {
  const policy = program
    .command('policy')
    .summary('explain what policies are consulted about')
    .description('Look at policies before they count.')
    .showHelpAfterError('(sluice policy --help says what there is)')
  addExplain(policy)
}

function addExplain(policy: Command): void {
  policy
    .command('explain')
    .argument('[flow]', 'an Agent Spec flow: about what of it policies are consulted, and what none guards')
    .summary('who is consulted where, and in which order')
    .description('Say who is consulted where and in which order. Everything is checked, and nothing is started.')
    .option('--policies <file>', 'a policy file (default: $SLUICE_POLICIES)')
    .option('--plugin <manifest>', 'a plugin beside it (repeatable)', collect)
    .option('--plugin-config <type=json>', 'settings of a component type, as JSON or @file (repeatable)', collect)
    .option('--plugin-env <name>', 'a variable that plugins see, NAME or NAME=value (repeatable)', collect)
    .option('--tools-dir <folder>', 'each executable file in it is a tool')
    .option('--json', 'as JSON')
    .action(async (flow: string | undefined, flags: ExplainFlags) => {
      const { explain } = await import('./policy/explain.ts')
      process.exitCode = await explain(flow, flags)
    })
}
