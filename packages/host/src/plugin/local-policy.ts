import { admits, type Consultation, type Half, type Policy, type Seam } from '@sluice/core'
import type { LocalPlugin } from './local.ts'
import { type RemotePolicyOptions, takeKept } from './policy.ts'

/** A policy whose handlers run in this process. */
export function localPolicy(local: LocalPlugin, { seams, ...policy }: Omit<RemotePolicyOptions, 'process'>): Policy {
  const { name: componentType, component } = policy
  const same = new Map<string, object>()
  for (const [seam, halves] of Object.entries(seams)) {
    for (const half of halves) {
      same.set(`${seam}.${half}`, { componentType, component, seam, admits: admits(seam as Seam, half) })
    }
  }
  const consult = (consultation: Consultation) =>
    local.consult(consultation, {
      ...same.get(`${consultation.seam}.${consultation.half}`),
      ...questionOf(consultation),
    })
  return {
    ...policy,
    subscribes: (seam: Seam, half: Half) => same.has(`${seam}.${half}`),
    consult: policy.kept === undefined ? consult : async (asked) => takeKept(await consult(asked), asked),
  }
}

function questionOf(consultation: Consultation): object {
  const { policy, question, revisit, answered, labels } = consultation
  const { subject, input, outcome, attempt, maxAttempts, substituted } = question
  const kept = policy.kept === undefined ? undefined : consultation.kept.value
  return { subject, input, outcome, attempt, maxAttempts, substituted, revisit, answered, labels, kept }
}
