import { propagation, trace } from '@opentelemetry/api'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import type { DecisionRecord } from '@sluice/core'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { ECHO, ECHO_TOOL, GATE, PAYING } from '../testing/documents.ts'
import { served } from '../testing/served.ts'
import { NAMES } from './names.ts'

const exporter = new InMemorySpanExporter()

/** What a viewer shows of a trace: names, indented under their parents. */
function treeOf(spans: readonly ReadableSpan[], parent?: string, depth = 0): readonly string[] {
  return spans
    .filter(({ parentSpanContext }) => parentSpanContext?.spanId === parent)
    .flatMap((span) => [`${'  '.repeat(depth)}${span.name}`, ...treeOf(spans, span.spanContext().spanId, depth + 1)])
}

describe('a trace', () => {
  beforeAll(() => {
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
  })
  afterAll(() => trace.disable())
  beforeEach(() => exporter.reset())

  it('has a span for the run, each node, each tool and each policy that was consulted', async () => {
    const records: DecisionRecord[] = []
    const files = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'gate.mjs': GATE }
    const { post } = await served(files, (at) => ({
      plugins: [at('gate.mjs')],
      decisions: { write: (record) => void records.push(record) },
    }))
    const { body } = await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' } })
    await vi.waitFor(() => expect(records).toHaveLength(1))
    const spans = exporter.getFinishedSpans()
    expect([...treeOf(spans)].sort()).toEqual(
      ['invoke_workflow paying', '  node start', '  node pay', '  policy Gate'].sort(),
    )
    const [policy, run] = ['policy Gate', 'invoke_workflow paying'].map((name) =>
      spans.find((span) => span.name === name),
    )
    expect(policy?.attributes).toMatchObject({
      [NAMES.policy]: 'Gate',
      [NAMES.seam]: 'toolCall',
      [NAMES.half]: 'before',
      [NAMES.verdict]: 'suspend',
      [NAMES.spanKind]: 'GUARDRAIL',
    })
    expect(run?.attributes).toMatchObject({
      [NAMES.operation]: 'invoke_workflow',
      [NAMES.conversation]: body.thread,
      [NAMES.run]: body.run,
      [NAMES.status]: 'paused',
    })
    expect(records.map((record) => record.trace?.traceId)).toEqual([run?.spanContext().traceId])
  })

  describe('of a request', () => {
    const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
    const PARENT = '00f067aa0ba902b7'
    const headers = { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: 'vendor=x' }
    const messages = [{ id: 'm', role: 'user', content: 'ten' }]
    const files = { 'flows/paying.json': PAYING, 'tools/pay': ECHO_TOOL, 'gate.mjs': GATE }
    const gated = () => served(files, (at) => ({ plugins: [at('gate.mjs')] }))
    beforeAll(() => void propagation.setGlobalPropagator(new W3CTraceContextPropagator()))
    afterAll(() => propagation.disable())

    const runSpan = () => exporter.getFinishedSpans().find(({ name }) => name === 'invoke_workflow paying')

    it.each([
      { path: '/v1/runs', body: { flow: 'paying', inputs: { said: 'ten' } } },
      { path: '/v1/chat/completions', body: { model: 'paying', messages } },
      { path: '/v1/ag-ui/paying', body: { threadId: 't', runId: 'r', messages, tools: [], context: [] } },
      {
        path: '/v1/ai-sdk/paying',
        body: { id: 'c', messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'ten' }] }] },
      },
    ])('is gone on with by the run that it begins: $path', async ({ path, body }) => {
      const { post } = await gated()
      await post(path, body, headers)
      const run = runSpan()
      expect(run?.parentSpanContext).toMatchObject({ traceId: TRACE, spanId: PARENT, isRemote: true })
      expect(run?.spanContext().traceState?.serialize()).toBe('vendor=x')
      expect(new Set(exporter.getFinishedSpans().map((span) => span.spanContext().traceId))).toEqual(new Set([TRACE]))
    })

    it('is gone on with by the run that its answer lets go on, and not by the one that asked', async () => {
      const { post } = await gated()
      const { body } = await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' } })
      expect(runSpan()?.parentSpanContext).toBeUndefined()
      exporter.reset()
      await post(`/v1/asks/${body.asks[0].id}/answer`, { answer: { approved: true } }, headers)
      expect(runSpan()?.parentSpanContext).toMatchObject({ traceId: TRACE, spanId: PARENT })
    })

    it.each(['', 'x', `00-${'0'.repeat(32)}-${PARENT}-01`, `00-${TRACE}-${PARENT}`])(
      'is none where it is no trace: "%s"',
      async (traceparent) => {
        const { post } = await gated()
        const { status } = await post('/v1/runs', { flow: 'paying', inputs: { said: 'ten' } }, { traceparent })
        expect(status).toBe(202)
        expect(runSpan()?.parentSpanContext).toBeUndefined()
      },
    )
  })

  it('holds nothing of what a run is about', async () => {
    const { post } = await served({ 'flows/echo.json': ECHO })
    await post('/v1/runs', { flow: 'echo', inputs: { said: 'marker-of-a-secret' } })
    const spans = exporter
      .getFinishedSpans()
      .map(({ name, attributes, events, status }) => ({ name, attributes, events, status }))
    expect(spans.length).toBe(3)
    expect(JSON.stringify(spans)).not.toContain('marker-of-a-secret')
  })
})
