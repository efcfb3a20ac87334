import { existsSync } from 'node:fs'

/** How a policy file is called where nobody calls it otherwise. */
const USUAL = 'sluice.yaml'

/**
 * The policy file that a flag or `SLUICE_POLICIES` names. It starts programs, so none is found by looking: one that lies here
 * and is not named is only mentioned.
 */
export function policyFile(flag: string | undefined): string | undefined {
  const named = flag ?? (process.env.SLUICE_POLICIES || undefined)
  if (named === undefined && existsSync(USUAL))
    process.stderr.write(`· ${USUAL} lies here and is not loaded; --policies ${USUAL} loads it\n`)
  return named
}
