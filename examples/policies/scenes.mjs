// What the demo shows and the check verifies: a flow, its input, the operator's settings, and what must be seen.
import { fileURLToPath } from 'node:url'

export const command = fileURLToPath(new URL('../../packages/cli/bin/sluice.js', import.meta.url))

const HERE = 'examples/policies'

/** What follows `sluice` for a scene, said from the root of the repository. */
export function argumentsOf({ flow, input, config, flags = [] }) {
  const settings = Object.entries(config).flatMap(([type, value]) => [
    '--plugin-config',
    `${type}=${JSON.stringify(value)}`,
  ])
  const machine = ['--tools-dir', `${HERE}/tools`, '--plugin', `${HERE}/policies.json`]
  return ['run', `${HERE}/${flow}`, ...machine, ...settings, ...flags, '--input', JSON.stringify(input)]
}

export const scenes = [
  {
    title: 'a failing node is retried, and when its attempts are spent, answered by the policy',
    flow: 'lookup.json',
    input: { query: 'order 991' },
    config: { RetryPolicy: { backoffMs: 100, substitute: { answer: 'the service is down; ask again later' } } },
    result: { answer: 'the service is down; ask again later' },
    seen: [
      /nodeError\.after +policy "RetryPolicy" retries node "lookup" in 100 ms, attempt 1 of 3/,
      /retries node "lookup" in 200 ms, attempt 2 of 3/,
      /policy "RetryPolicy" supplied a result for node "lookup"/,
    ],
  },
  {
    title: 'a tool call is refused, and the model is told why',
    flow: 'agent.yaml',
    input: { task: 'free some space' },
    config: { ApprovalGate: { guard: { shell: ['rm -rf', 'sudo'] } } },
    result: { result: 'The shell said: Refused: matches the guarded pattern "rm -rf"' },
    seen: [/toolCall\.before +policy "ApprovalGate" refused the call of tool "shell"/],
  },
  {
    title: 'a rate limit is met: the second model call is refused, and the node gets a result of the operator',
    flow: 'agent.yaml',
    input: { task: 'free some space' },
    config: {
      RateLimit: { callsPerMinute: 1 },
      RetryPolicy: { maxAttempts: 2, backoffMs: 50, substitute: { result: 'busy; try again in a minute' } },
    },
    result: { result: 'busy; try again in a minute' },
    seen: [
      /policy "RateLimit" refused the model call of round 2 of node "agent": 429/,
      /policy "RetryPolicy" supplied a result for node "agent"/,
    ],
  },
  {
    title: 'an agent is held to its budget of rounds, and the run says so',
    flow: 'agent.yaml',
    input: { task: 'free some space' },
    config: { RoundBudget: { maxRounds: 1 } },
    expectExit: 1,
    seen: [/policy "RoundBudget" refused round 2 of node "agent": 1 rounds is the budget/],
  },
  {
    title: 'a rehearsal: tool nodes are answered, nothing runs, and every node is audited',
    flow: 'lookup.json',
    flags: ['--verbose'],
    input: { query: 'order 991' },
    config: { NodeAudit: { dryRun: ['ToolNode'], stub: { answer: '(rehearsed)' } } },
    result: { answer: '(rehearsed)' },
    seen: [
      /node\.before +policy "NodeAudit" supplied a result for node "lookup"; it did not run/,
      /plugin:NodeAudit:node +\{"node":"end"/,
    ],
    audited: ['start', 'lookup', 'end'],
  },
]
