import { type Command, Option } from 'commander'
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

export interface CheckFlags extends InstallFlags {
  readonly json?: boolean
}

export interface NewFlags {
  readonly lang: Language
  readonly seam: string
  readonly force?: boolean
}

const LANGUAGES = ['js', 'ts', 'py'] as const
export type Language = (typeof LANGUAGES)[number]

/** The commands for operators, a file each in `policy/`. */
export function addPolicy(program: Command): void {
  const policy = program
    .command('policy')
    .summary('explain, check and begin policies')
    .description('Look at policies before they count.')
    .showHelpAfterError('(sluice policy --help says what there is)')
  addExplain(policy)
  addCheck(policy)
  addNew(policy)
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

function addCheck(policy: Command): void {
  policy
    .command('check')
    .summary('start every plugin, and let it test itself')
    .description('Start every plugin, shake hands, and let each component test itself. No policy is consulted.')
    .option('--policies <file>', 'a policy file (default: $SLUICE_POLICIES)')
    .option('--plugin <manifest>', 'a plugin beside it (repeatable)', collect)
    .option('--plugin-config <type=json>', 'settings of a component type, as JSON or @file (repeatable)', collect)
    .option('--plugin-env <name>', 'a variable that plugins see, NAME or NAME=value (repeatable)', collect)
    .option('--json', 'as JSON')
    .addHelpText('after', '\nExit codes: 0 all is well, 2 something is not.')
    .action(async (flags: CheckFlags) => {
      const { checkPolicies } = await import('./policy/check.ts')
      process.exitCode = await checkPolicies(flags)
    })
}

function addNew(policy: Command): void {
  policy
    .command('new')
    .argument('<name>', 'of the plugin and of the folder that is made: small letters, digits and "-"')
    .summary('begin a policy, with its manifest and its test')
    .description('Make a folder with a manifest, a policy and its test. What is there is not overwritten.')
    .addOption(new Option('--lang <language>', 'of the policy').choices(LANGUAGES).default('js'))
    .option('--seam <half>', 'where it is consulted', 'toolCall.before')
    .option('--force', 'overwrite what is there')
    .action(async (name: string, flags: NewFlags) => {
      const { newPolicy } = await import('./policy/new.ts')
      process.exitCode = await newPolicy(name, flags)
    })
}
