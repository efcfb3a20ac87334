import type { Command } from 'commander'
import { collect, whole } from './values.ts'

/** What every command that runs flows is told of the machine. */
export interface MachineFlags {
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
}

/** For commands that run flows themselves; a server knows who calls. */
export const PRINCIPAL = [
  '--principal <id>',
  'for whom it runs: stands in decisions, and whom policies count that keep by principal',
] as const

export const machineOptions = (command: Command): Command =>
  command
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
