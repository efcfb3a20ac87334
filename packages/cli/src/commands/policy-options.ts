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

export interface TestFlags extends InstallFlags {
  readonly junit?: string
  readonly json?: boolean
}

export interface ReplayFlags extends InstallFlags {
  readonly against?: string
  readonly againstPlugin?: readonly string[]
  readonly againstPluginConfig?: readonly string[]
  readonly againstPluginEnv?: readonly string[]
  readonly toolsDir?: string
  readonly store?: string
  readonly thread?: readonly string[]
  readonly exitCode?: boolean
  readonly json?: boolean
}

export interface VerifyFlags {
  readonly head?: string
  readonly json?: boolean
}

/** The commands for operators, a file each in `policy/`. */
export function addPolicy(program: Command): void {
  const policy = program
    .command('policy')
    .summary('explain, check, test, replay and begin policies')
    .description('Look at policies before they count.')
    .showHelpAfterError('(sluice policy --help says what there is)')
  addExplain(policy)
  addCheck(policy)
  addNew(policy)
  addTest(policy)
  addReplay(policy)
  addVerify(policy)
}

/** A command that consults policies, with the flags that install them. */
const installing = (command: Command): Command =>
  command
    .option('--policies <file>', 'a policy file (default: $SLUICE_POLICIES)')
    .option('--plugin <manifest>', 'a plugin beside it (repeatable)', collect)
    .option('--plugin-config <type=json>', 'settings of a component type, as JSON or @file (repeatable)', collect)
    .option('--plugin-env <name>', 'a variable that plugins see, NAME or NAME=value (repeatable)', collect)

function addExplain(policy: Command): void {
  installing(policy.command('explain'))
    .argument('[flow]', 'an Agent Spec flow: about what of it policies are consulted, and what none guards')
    .summary('who is consulted where, and in which order')
    .description('Say who is consulted where and in which order. Everything is checked, and nothing is started.')
    .option('--tools-dir <folder>', 'each executable file in it is a tool')
    .option('--json', 'as JSON')
    .action(async (flow: string | undefined, flags: ExplainFlags) => {
      const { explain } = await import('./policy/explain.ts')
      process.exitCode = await explain(flow, flags)
    })
}

function addCheck(policy: Command): void {
  installing(policy.command('check'))
    .summary('start every plugin, and let it test itself')
    .description('Start every plugin, shake hands, and let each component test itself. No policy is consulted.')
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

function addTest(policy: Command): void {
  installing(policy.command('test'))
    .argument('<cases...>', 'YAML files of cases: what is given, and what is expected')
    .summary('consult policies about cases, and compare the verdicts')
    .description(
      'Consult policies about cases, without a run around them. Exits 1 when one comes otherwise than expected.',
    )
    .option('--junit <file>', 'write the results as JUnit XML')
    .option('--json', 'as JSON')
    .action(async (files: readonly string[], flags: TestFlags) => {
      const { testPolicies } = await import('./policy/test.ts')
      process.exitCode = await testPolicies(files, flags)
    })
}

function addReplay(policy: Command): void {
  installing(policy.command('replay'))
    .argument('<flow>', 'the flow whose threads are played again')
    .summary('play recorded threads past other policies, and say what they would decide otherwise')
    .description(
      'Play recorded threads of a flow past these policies. What models, tools and people said is taken from the record, and nothing is asked of them. Without --against or --against-plugin, everything that the policies would change is a difference.',
    )
    .option('--against <file>', 'the policy file to compare with')
    .option(
      '--against-plugin <manifest>',
      'a plugin to compare with, beside that file or without one (repeatable)',
      collect,
    )
    .option('--against-plugin-config <type=json>', 'settings on that side, as --plugin-config (repeatable)', collect)
    .option('--against-plugin-env <name>', 'a variable that plugins of that side see (repeatable)', collect)
    .option('--thread <id>', 'a thread to play; every one of the flow without it (repeatable)', collect)
    .option('--store <file>', 'the file that keeps them (default: $SLUICE_STORE, or .sluice/threads.db)')
    .option('--tools-dir <folder>', 'the tools of the flow; none of them is run')
    .option('--exit-code', 'exit 1 when there is a difference')
    .option('--json', 'as JSON')
    .action(async (flow: string, flags: ReplayFlags) => {
      const { replayPolicies } = await import('./policy/replay.ts')
      process.exitCode = await replayPolicies(flow, flags)
    })
}

function addVerify(policy: Command): void {
  policy
    .command('verify')
    .argument('<file>', 'a decision log that was written with --decisions-chain')
    .summary('check that no record of a decision log was changed or taken out')
    .description(
      'Check that each record of a decision log names the one before it. Exits 1 when one does not; records that were lost, as the next one says, are told and are no fault.',
    )
    .option('--head <hash>', 'a hash that the log ended with once: one of its records must have it')
    .option('--json', 'as JSON')
    .action(async (file: string, flags: VerifyFlags) => {
      const { verify } = await import('./policy/verify.ts')
      process.exitCode = await verify(file, flags)
    })
}
