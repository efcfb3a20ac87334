import { admits, type Policy, type Seam } from '@sluice/core'
import type { Requirements } from './entry.ts'
import type { PolicyFaults } from './faults.ts'
import { observes } from './hooks.ts'

/** Adds a fault for each policy that must be there and is not, and for each listed seam that nobody enforces anything at. */
export function checkRequired(required: Requirements, policies: readonly Policy[], faults: PolicyFaults): void {
  for (const [seam, names] of Object.entries(required) as [Seam, readonly string[]][]) {
    const missing = names.flatMap((name, i) => {
      const found = policies.find((policy) => policy.name === name)
      const why = whyNot(found, seam, name)
      return why === undefined ? [] : [{ i, why }]
    })
    for (const { i, why } of missing)
      faults.add('POLICY_REQUIRED', ['require', seam, i], `${why}, and nothing runs without it.`)
    if (missing.length > 0 || policies.some((policy) => enforces(policy) && decides(policy, seam))) continue
    faults.add('POLICY_REQUIRED', ['require', seam], `no policy that enforces is consulted at ${seam}.`, {
      onKey: true,
    })
  }
}

function whyNot(policy: Policy | undefined, seam: Seam, name: string): string | undefined {
  if (policy === undefined) return `policy "${name}" is not installed`
  if (!isAt(policy, seam)) return `policy "${name}" is not consulted at ${seam}`
  if (!decides(policy, seam)) return `policy "${name}" is only told at ${seam} and decides nothing there`
  return enforces(policy) ? undefined : `policy "${name}" is in mode "${policy.mode}"`
}

const enforces = ({ mode = 'enforce' }: Policy): boolean => mode === 'enforce'

const halvesOf = (policy: Policy, seam: Seam) =>
  (['before', 'after'] as const).filter((half) => admits(seam, half).length > 0 && policy.subscribes(seam, half))

const isAt = (policy: Policy, seam: Seam): boolean => halvesOf(policy, seam).length > 0

/** Whether anything but going on may come of what it says. */
const decides = (policy: Policy, seam: Seam): boolean =>
  halvesOf(policy, seam).some((half) => admits(seam, half).length > 1 && !observes(policy, seam, half))
