import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { canonical, type DecisionSink, type Policy } from '@sluice/core'

/**
 * Says in each record which policies were in force: a digest of the policy file, and of each policy with its version and its
 * settings, wherever these were given.
 */
export async function withRevision(
  sink: DecisionSink,
  policies: readonly Policy[],
  file: string | undefined,
): Promise<DecisionSink> {
  const hash = createHash('sha256')
  if (file !== undefined) hash.update(await readFile(file))
  const inForce = policies.map(({ name, plugin, version = '', component = {} }) => [name, plugin, version, component])
  hash.update(canonical(inForce))
  const revision = `sha256:${hash.digest('hex')}`
  return { required: sink.required, write: (record) => sink.write({ ...record, revision }) }
}
