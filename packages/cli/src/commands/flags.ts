import type { RunOptions } from '@sluice/core'
import type { HostOptions } from '@sluice/host'
import type { MachineFlags } from './machine-options.ts'
import { policyFile } from './policy-file.ts'

/** What the flags ask of the host. */
export function readFlags(flags: MachineFlags): HostOptions {
  const { toolsDir, plugin, pluginConfig, pluginEnv, discoverTools } = flags
  const { maxIterations, maxNodeAttempts, maxToolRounds, timeout } = flags
  const { decisions: file, decisionsChain: chain, decisionsRequired: required } = flags
  return {
    policies: policyFile(flags.policies),
    ...(file !== undefined && { decisions: { file, chain, required } }),
    plugins: plugin,
    pluginConfig,
    pluginEnv,
    discoverTools,
    toolsDir,
    limits: { maxIterations, maxNodeAttempts, maxToolRounds, timeoutMs: timeout },
  }
}

/** For whom runs are that this command begins. */
export const runsFor = ({ principal: id }: { readonly principal?: string }): Pick<RunOptions, 'principal'> =>
  id === undefined ? {} : { principal: { kind: 'local', id } }
