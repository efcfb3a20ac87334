import { newToken } from '@sluice/server'
import { EXIT } from '../exit.ts'
import type { TokenFlags } from './token-options.ts'

export function makeToken(id: string, { scopes, expires }: TokenFlags): number {
  const { token, entry } = newToken(id, scopes, expires)
  process.stderr.write(
    `Give the first line to ${id}; it is shown once. The second goes into the file, under "principals:".\n`,
  )
  process.stdout.write(`${token}\n- ${entry}\n`)
  return EXIT.completed
}
