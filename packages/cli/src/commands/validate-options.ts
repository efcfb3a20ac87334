import type { Command } from 'commander'
import { collect } from './values.ts'

export interface ValidateFlags {
  readonly policies?: string
  readonly plugin?: readonly string[]
}

export function addValidate(program: Command): void {
  program
    .command('validate')
    .argument('<flow>', 'an Agent Spec document, JSON or YAML')
    .summary('check a document and report every fault')
    .description('Check a document without running anything. Every fault is reported at once, with its place.')
    .option('--policies <file>', 'a policy file with plugins whose types it uses (default: $SLUICE_POLICIES)')
    .option('--plugin <manifest>', 'a plugin whose component types the document uses (repeatable)', collect)
    .action(async (flow: string, flags: ValidateFlags) => {
      const { validateFlow } = await import('./validate.ts')
      process.exitCode = await validateFlow(flow, flags)
    })
}
