import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { JsonObject, RunEvent } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { eventsOn, hostOf } from '../testing/host.ts'
import { builtRuntime } from '../testing/runtime.ts'
import { openHost } from './host.ts'

const at = (path: string) => fileURLToPath(new URL(`../../../../${path}`, import.meta.url))
const corpus = process.env.SLUICE_CORPUS ?? at('../shared/agent-spec')
const flows = `${corpus}/heddle/examples/policies`
const isThere = existsSync(`${flows}/flow.json`)
if (!isThere) console.warn('The flows of heddle are not there; set SLUICE_CORPUS to the folder that has them.')

const runtime = builtRuntime()
const machine = { plugins: [at('examples/policies/policies.json')], toolsDir: at('examples/policies/tools'), runtime }
const configured = (settings: Readonly<Record<string, object>>) =>
  Object.entries(settings).map(([type, value]) => `${type}=${JSON.stringify(value)}`)

interface Row {
  readonly flow: 'flow' | 'gated-flow'
  readonly settings?: Readonly<Record<string, object>>
  readonly mode?: string
}

/** Runs a flow of theirs as it is, with our plugin of the same policies. */
async function run({ flow, settings = {}, mode }: Row) {
  const env = { PATH: process.env.PATH, ...(mode === undefined ? {} : { FLAKY_MODE: mode }) }
  const host = await hostOf({ ...machine, pluginConfig: configured(settings), env })
  const input: JsonObject = flow === 'flow' ? { query: 'order 991' } : { task: 'free some space' }
  const events = await eventsOn(host, `${flows}/${flow}.json`, input)
  const end = events.at(-1) as RunEvent & { type: 'run_end' }
  const of = <T extends RunEvent['type']>(type: T) =>
    events.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type)
  return {
    end,
    warnings: of('warning').map(({ message }) => message),
    errors: of('node_error').map(({ nodeName, attempt }) => `${nodeName} ${attempt}`),
    tools: of('tool_call').map(({ toolName, toolArgs }) => `${toolName} ${JSON.stringify(toolArgs)}`),
    audit: events.flatMap((event) =>
      event.type === 'plugin:NodeAudit:node' ? [(event as { data?: unknown }).data] : [],
    ),
  }
}

describe.skipIf(!isThere)("heddle's flows for its policies, unchanged", () => {
  it('a node that fails is retried, then answered: one error an attempt, one warning a retry, one for the result', async () => {
    const settings = { RetryPolicy: { backoffMs: 50, substitute: { answer: 'try again later' } } }
    const { end, errors, warnings } = await run({ flow: 'flow', settings })
    expect(end).toMatchObject({ status: 'completed', result: { query: 'order 991', answer: 'try again later' } })
    expect(errors).toEqual(['lookup 1', 'lookup 2', 'lookup 3'])
    expect(warnings).toEqual([
      expect.stringMatching(
        /policy "RetryPolicy" retries node "lookup" in 50 ms, attempt 1 of 3: .*service unavailable/,
      ),
      expect.stringMatching(/policy "RetryPolicy" retries node "lookup" in 100 ms, attempt 2 of 3: /),
      expect.stringMatching(/policy "RetryPolicy" supplied a result for node "lookup"; it had failed: /),
    ])
  })

  it("without settings the run fails with the tool's own error, and each settled node is audited once", async () => {
    const { end, errors, audit } = await run({ flow: 'flow' })
    expect(end).toMatchObject({ status: 'failed', error: { code: 'TOOL_FAILED' } })
    expect(end.error?.message).toMatch(/^tool "flaky" ended with exit code 1: service unavailable/)
    expect(errors).toEqual(['lookup 1', 'lookup 2', 'lookup 3'])
    expect(audit).toEqual([
      { node: 'start', type: 'StartNode', ok: true, attempt: 1 },
      { node: 'lookup', type: 'ToolNode', ok: false, attempt: 3 },
    ])
  })

  it('an error that is not listed is not retried', async () => {
    const { end, errors, warnings } = await run({ flow: 'flow', mode: 'fatal' })
    expect(end).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('the account is closed') },
    })
    expect(errors).toEqual(['lookup 1'])
    expect(warnings).toEqual([])
  })

  it('a rehearsed tool node is answered and nothing runs', async () => {
    const settings = { NodeAudit: { dryRun: ['ToolNode'], stub: { answer: '(rehearsed)' } } }
    const { end, tools, warnings } = await run({ flow: 'flow', settings })
    expect(end).toMatchObject({ status: 'completed', result: { query: 'order 991', answer: '(rehearsed)' } })
    expect(tools).toEqual([])
    expect(warnings).toEqual(['policy "NodeAudit" supplied a result for node "lookup"; it did not run.'])
  })

  it('and a stub that lacks what the node declares is the failure of the policy', async () => {
    const { end } = await run({ flow: 'flow', settings: { NodeAudit: { dryRun: ['ToolNode'] } } })
    expect(end).toMatchObject({
      status: 'failed',
      error: {
        name: 'MiddlewareError',
        message: expect.stringContaining('output "answer" of node "lookup" has no value'),
      },
    })
  })

  it('a guarded call is refused, and the model is told why', async () => {
    const { end, tools, warnings } = await run({
      flow: 'gated-flow',
      settings: { ApprovalGate: { guard: { shell: ['rm -rf'] } } },
    })
    expect(end).toMatchObject({
      status: 'completed',
      result: { task: 'free some space', result: 'The shell said: Refused: matches the guarded pattern "rm -rf"' },
    })
    expect(tools).toEqual([])
    expect(warnings).toEqual([expect.stringContaining('matches the guarded pattern "rm -rf"')])
  })

  it('an unguarded one runs', async () => {
    const { end, tools } = await run({ flow: 'gated-flow' })
    expect(end).toMatchObject({
      status: 'completed',
      result: { result: expect.stringContaining('(would run) rm -rf /var/data') },
    })
    expect(tools).toEqual(['shell {"cmd":"rm -rf /var/data"}'])
  })

  it('a rate that is spent fails the node, whose retries start it over, until it is answered', async () => {
    const { end, tools, errors, warnings } = await run({
      flow: 'gated-flow',
      settings: { RateLimit: { callsPerMinute: 1 }, RetryPolicy: { backoffMs: 10, substitute: { result: 'busy' } } },
    })
    expect(end).toMatchObject({ status: 'completed', result: { task: 'free some space', result: 'busy' } })
    expect(tools).toEqual(['shell {"cmd":"rm -rf /var/data"}'])
    expect(errors).toEqual(['agent 1', 'agent 2', 'agent 3'])
    expect(warnings.filter((message) => message.includes('"RetryPolicy" retries'))).toHaveLength(2)
    expect(warnings.filter((message) => message.includes('supplied a result'))).toHaveLength(1)
  })
})

describe('settings that are wrong are one line, before anything runs', () => {
  it.each([
    {
      name: 'an unknown setting',
      config: 'RetryPolicy={"backofMs":1}',
      says: /^the settings of "RetryPolicy" \(plugin policies\).*"backofMs"[^\n]*$/,
    },
    {
      name: 'an unknown type',
      config: 'Retry={}',
      says: /^there are settings for "Retry", which no plugin provides; loaded are: RetryPolicy, ApprovalGate, NodeAudit, RateLimit, RoundBudget\.$/,
    },
  ])('$name', async ({ config, says }) => {
    await expect(openHost({ ...machine, pluginConfig: [config] })).rejects.toThrow(says)
  })
})
