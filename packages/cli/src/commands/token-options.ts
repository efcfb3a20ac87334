import type { Scope } from '@sluice/server'
import { type Command, InvalidArgumentError } from 'commander'

export interface TokenFlags {
  readonly scopes: readonly Scope[]
  readonly expires?: string
}

const SCOPES: readonly Scope[] = ['run', 'answer', 'read', 'edit', 'admin']

export function addToken(program: Command): void {
  program
    .command('token')
    .summary('make a token for a caller of sluice serve')
    .command('new')
    .argument('<id>', 'who is to have it: letters, digits, ".", "_", "@" and "-"')
    .summary('make a token')
    .description(
      'Print a new token, and then the entry for the file of sluice serve --tokens. The file holds its hash; the token itself is kept nowhere.',
    )
    .requiredOption('--scopes <list>', `what it is good for: ${SCOPES.join(', ')}`, scopes)
    .option('--expires <date>', 'when it ends, as 2030-01-31')
    .action(async (id: string, flags: TokenFlags) => {
      const { makeToken } = await import('./token.ts')
      process.exitCode = makeToken(id, flags)
    })
}

function scopes(text: string): readonly Scope[] {
  const named = text.split(',').map((each) => each.trim())
  if (named.every((each) => SCOPES.includes(each as Scope))) return named as Scope[]
  throw new InvalidArgumentError(`scopes are: ${SCOPES.join(', ')}.`)
}
