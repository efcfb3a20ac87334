// What a rule of a policy file costs at one call, and the selector of one: its condition in CEL, and the verdict it gives.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Consultation, platform } from '@sluice/core'
import { openHost } from '@sluice/host'
import { interleaved, row } from '../lib/measure.mjs'

const CALLS = 20_000

const RULES = `policies:
  - rule: of-the-site
    seam: toolCall.before
    match: subject.toolName == "mail"
    when: subject.toolName == "mail" && subject.caller == "model"
    verdict: reject
    reason: no
  - rule: of-the-input
    seam: toolCall.before
    when: input.amount > 1000 && input.to.startsWith("external:")
    verdict: reject
    reason: no
  - rule: pattern
    seam: toolCall.before
    when: re(input.cmd, "rm -rf|sudo")
    verdict: reject
    reason: no
`
const SUBJECT = {
  nodeName: 'agent',
  nodeType: 'AgentNode',
  toolName: 'shell',
  toolCallId: 'c',
  caller: 'model',
  source: 'code',
}
const INPUT = { cmd: 'ls -la /var/log/syslog', amount: 100, to: 'internal:anna' }

/** The question of the gate, and the rule's answer to it. */
function asking(policy) {
  const site = { stopped: false, timers: platform, labels: new Set(), consultations: new Set() }
  const question = {
    site,
    seam: 'toolCall',
    half: 'before',
    subject: SUBJECT,
    input: INPUT,
    attempt: 1,
    maxAttempts: 1,
    nestedIn: [],
  }
  return () => {
    for (let i = 0; i < CALLS; i++) {
      if (policy.consult(new Consultation(policy, question, false)).action !== 'proceed') throw new Error('it spoke')
    }
  }
}

export default async function policyRule() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const file = join(folder, 'sluice.yaml')
  writeFileSync(file, RULES)
  const host = await openHost({ policies: file })
  try {
    const { policies } = host.runtime.gates
    const [{ match }] = policies
    const shown = { subject: SUBJECT, labels: [] }
    const works = Object.fromEntries(policies.map((policy) => [policy.name, asking(policy)]))
    const selector = () => {
      for (let i = 0; i < CALLS; i++) if (match.matches(shown)) throw new Error('it matched')
    }
    const took = await interleaved({ ...works, selector }, { ops: CALLS, samples: 15 })
    return Object.entries(took).map(([name, { median, best }]) =>
      row('a rule in CEL, one half', name, median, 'µs', { best, goal: '≤ 2', holds: best <= 2 }),
    )
  } finally {
    await host.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
