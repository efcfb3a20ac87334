import { describe, expect, it } from 'vitest'
import { ECHO, ECHO_TOOL, GATE, PAYING } from '../testing/documents.ts'
import { served } from '../testing/served.ts'

describe('the figures for Prometheus', () => {
  const files = {
    'flows/echo.json': ECHO,
    'flows/paying.json': PAYING,
    'tools/pay': ECHO_TOOL,
    'gate.mjs': GATE,
  }
  const gated = () => served(files, (at) => ({ plugins: [at('gate.mjs')] }))

  it('count runs by flow and how they ended, verdicts by policy, tool calls, and what is open', async () => {
    const { get, post } = await gated()
    await post('/v1/runs', { flow: 'echo', inputs: { said: 'hello' } })
    await post('/v1/runs', { flow: 'echo', inputs: { said: 'hello' } })
    await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' } })
    const asked = await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' } })
    await post(`/v1/asks/${asked.body.asks[0].id}/answer`, { answer: { approved: true } })
    const { headers, text } = await get('/metrics')
    expect(headers.get('content-type')).toContain('text/plain')
    const lines = text.split('\n')
    expect(lines).toEqual(
      expect.arrayContaining([
        'sluice_runs_total{flow="echo",status="completed"} 2',
        'sluice_runs_total{flow="paying",status="paused"} 2',
        'sluice_runs_total{flow="paying",status="completed"} 1',
        'sluice_run_duration_seconds_count{flow="echo",status="completed"} 2',
        'sluice_verdicts_total{policy="Gate",seam="toolCall",half="before",verdict="suspend",mode="enforce"} 2',
        'sluice_tool_calls_total{tool="pay",outcome="ok"} 1',
        'sluice_runs_under_way 0',
        'sluice_asks_open 1',
      ]),
    )
  })

  it('name no flow, tool or model that a request brought', async () => {
    const { get, post } = await served({ 'tools/pay': ECHO_TOOL })
    await post('/v1/runs', { flow: { ...PAYING, name: 'marker-of-a-caller' }, inputs: { said: 'ten' } })
    const { text } = await get('/metrics')
    expect(text).toContain('sluice_runs_total{flow="(request)",status="completed"} 1')
    expect(text).not.toContain('marker-of-a-caller')
  })
})
