import type { HostOptions } from '@sluice/host'
import { policyFile } from './policy-file.ts'
import type { RunFlags } from './run-options.ts'

/** What the flags ask of the host. */
export function readFlags(flags: RunFlags): HostOptions {
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
