import { trace } from '@opentelemetry/api'
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
