import { describe, expect, it } from 'vitest'
import { Clock } from '../../testing/clock.ts'
import { type Answer, noting, oneNode, says } from '../../testing/play.ts'
import { createRuntime, MiddlewareError, type PolicyOptions } from '../index.ts'

/** A policy whose health the test decides, and runs that call one tool past it. */
function stage(rules: Partial<PolicyOptions> = {}, failing: Answer = () => Promise.reject(new Error('down'))) {
  const clock = new Clock()
  const health = { good: false }
  const gate = says(
    'Gate',
    {
      'toolCall.before': (shown, ctx) =>
        health.good ? { action: 'proceed' } : typeof failing === 'function' ? failing(shown, ctx) : failing,
    },
    { breaker: { failures: 3, openMs: 1_000 }, onFailure: 'pass', ...rules },
  )
  const graph = oneNode(async (_, ctx) => ({ made: await ctx.callTool(noting(), { text: 'x' }) }))
  const runtime = createRuntime({ policies: [gate], platform: clock })
  const run = async () => {
    const { warnings, error, status } = await runtime.settle(graph, {})
    return { warnings: warnings.map(({ message }) => message), error: error as MiddlewareError, status }
  }
  return { run, gate, health, clock }
}

const OPENS = 'policy "Gate" has failed 3 times in a row; its breaker is open, and it is not consulted for 1000 ms.'

describe('a breaker', () => {
  it('opens after so many failures in a row, and says so: the policy is not consulted, and its failure rule applies at once', async () => {
    const { run, gate } = stage()
    await run()
    await run()
    expect((await run()).warnings).toContain(OPENS)
    const { warnings } = await run()
    expect(gate.asked).toHaveLength(3)
    expect(warnings).toEqual([
      expect.stringContaining('its breaker is open after 3 failures in a row; it is consulted again in 1000 ms'),
    ])
  })

  it('stops the run where failures do', async () => {
    const { run, gate } = stage({ onFailure: 'fail' })
    for (let i = 0; i < 3; i++) expect((await run()).error.message).toContain('down')
    const { error } = await run()
    expect(error).toBeInstanceOf(MiddlewareError)
    expect(error).toMatchObject({ cause: { code: 'POLICY_BREAKER_OPEN' } })
    expect(gate.asked).toHaveLength(3)
  })

  it('counts failures in a row only', async () => {
    const { run, gate, health } = stage()
    for (let i = 0; i < 9; i++) {
      health.good = i % 3 === 2
      await run()
    }
    expect(gate.asked).toHaveLength(9)
  })

  it('counts what a policy gives and does not fit as well', async () => {
    const { run, gate } = stage({}, { action: 'modify', input: { text: 5 } })
    for (let i = 0; i < 5; i++) await run()
    expect(gate.asked).toHaveLength(3)
  })

  it('lets one try through once its time is over; a success closes it, and says so', async () => {
    const { run, gate, health, clock } = stage()
    for (let i = 0; i < 3; i++) await run()
    await clock.pass(1_000)
    health.good = true
    expect((await run()).warnings).toEqual(['policy "Gate" answers again; its breaker is closed.'])
    health.good = false
    await run()
    await run()
    expect(gate.asked).toHaveLength(6)
  })

  it('stays open when the try fails, for as long again', async () => {
    const { run, gate, clock } = stage()
    for (let i = 0; i < 3; i++) await run()
    await clock.pass(1_000)
    await run()
    await clock.pass(999)
    await run()
    expect(gate.asked).toHaveLength(4)
    await clock.pass(1)
    await run()
    expect(gate.asked).toHaveLength(5)
  })

  it('lets nobody else through while one is tried, and another one if nothing is ever heard of that', async () => {
    let hang = false
    const { run, gate, clock } = stage({ timeoutMs: 60_000 }, () =>
      hang ? new Promise(() => undefined) : Promise.reject(new Error('down')),
    )
    for (let i = 0; i < 3; i++) await run()
    await clock.pass(1_000)
    hang = true
    void run()
    await clock.pass(0)
    await run()
    expect(gate.asked).toHaveLength(4)
    hang = false
    await clock.pass(1_000)
    await run()
    expect(gate.asked).toHaveLength(5)
  })

  it('is one for each policy object', async () => {
    const [broken, other] = [stage(), stage()]
    for (let i = 0; i < 5; i++) await broken.run()
    await other.run()
    expect(other.gate.asked).toHaveLength(1)
  })
})
