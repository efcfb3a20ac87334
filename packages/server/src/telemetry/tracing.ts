import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api'
import { context, propagation, ROOT_CONTEXT, SpanStatusCode, trace } from '@opentelemetry/api'
import type { DecisionRecord, DecisionSink, RunEvent, ShownError } from '@sluice/core'
import type { RunEntry } from '@sluice/host'
import { innerName } from '../runs/thread-name.ts'
import { NAMES } from './names.ts'
import type { RunWatcher } from './watcher.ts'

type AtNode = RunEvent & { readonly nodeName: string; readonly nodeType: string }

/** The spans of a run that are open, by what they are of; of several alike, the last begun is ended first. */
interface Traced {
  readonly span: Span
  readonly context: Context
  readonly open: Map<string, { readonly span: Span; readonly context: Context }[]>
}

/** Runs whose spans are known by their ids. */
const MOST_KEPT = 1_000

/** Spans of runs, nodes, requests to models, tools and policies. Nothing that a run is about stands in them. */
export class Tracing implements RunWatcher, DecisionSink {
  readonly #tracer: Tracer
  readonly #runs = new Map<string, Traced>()
  /** By the thread as decisions name it: runs inside a run have ids of their own. */
  readonly #threads = new Map<string, Traced>()

  private constructor(tracer: Tracer) {
    this.#tracer = tracer
  }

  /** `undefined` where nobody has registered a tracer provider. */
  static start(version: string): Tracing | undefined {
    const tracer = trace.getTracer('sluice', version)
    return tracer.startSpan('sluice', {}, ROOT_CONTEXT).isRecording() ? new Tracing(tracer) : undefined
  }

  began(entry: RunEntry, headers: Readonly<Record<string, string>> = {}): void {
    const flow = 'name' in entry.flow ? entry.flow.name : undefined
    const attributes = {
      [NAMES.operation]: 'invoke_workflow',
      ...(flow === undefined ? {} : { [NAMES.agent]: flow }),
      [NAMES.conversation]: entry.thread,
      [NAMES.run]: entry.id,
      [NAMES.spanKind]: 'CHAIN',
    }
    const parent = propagation.extract(context.active(), headers)
    const span = this.#tracer.startSpan(`invoke_workflow ${flow ?? ''}`.trim(), { attributes }, parent)
    const traced = { span, context: trace.setSpan(parent, span), open: new Map() }
    this.#runs.set(entry.id, traced)
    this.#threads.set(innerName(entry.owner, entry.thread), traced)
  }

  event({ id }: RunEntry, event: RunEvent): void {
    const traced = this.#runs.get(id)
    if (traced === undefined) return
    switch (event.type) {
      case 'node_start':
        this.#open(traced, nodeKey(event), parentOfNode(traced, event), ...nodeSpan(event))
        break
      case 'node_complete':
        end(traced, nodeKey(event))
        break
      case 'node_error':
        end(traced, nodeKey(event), event.error)
        break
      case 'model_call':
        this.#open(traced, modelKey(event), inNode(traced, event), ...modelSpan(event))
        break
      case 'model_result':
        end(traced, modelKey(event), event.error, spent(event))
        break
      case 'tool_call':
        this.#open(traced, toolKey(event), inNode(traced, event), ...toolSpan(event))
        break
      case 'tool_result':
        end(traced, toolKey(event), event.error)
    }
  }

  ended({ id, ending }: RunEntry): void {
    const traced = this.#runs.get(id)
    if (traced === undefined) return
    this.#forgetOld()
    for (const spans of traced.open.values()) for (const { span } of spans) span.end()
    if (ending !== undefined) traced.span.setAttribute(NAMES.status, ending.status)
    fail(traced.span, ending?.error)
    traced.span.end()
  }

  /** A span for each policy of a half. */
  write(record: DecisionRecord): void {
    const parent = this.#tracedOf(record)
    const start = Date.parse(record.time)
    for (const { name, mode, verdict, durationMs, failed } of record.policies) {
      const attributes = {
        [NAMES.policy]: name,
        [NAMES.seam]: record.seam,
        [NAMES.half]: record.half,
        [NAMES.verdict]: verdict,
        [NAMES.mode]: mode,
        [NAMES.spanKind]: 'GUARDRAIL',
        ...(record.subject.node === undefined ? {} : { [NAMES.node]: record.subject.node }),
      }
      const span = this.#tracer.startSpan(`policy ${name}`, { attributes, startTime: start }, parent?.context)
      if (failed !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: failed })
      span.end(start + durationMs)
    }
  }

  /** The record with the trace that it belongs to. */
  placed(record: DecisionRecord): DecisionRecord {
    const at = this.#tracedOf(record)?.span.spanContext()
    return at === undefined ? record : { ...record, trace: { traceId: at.traceId, spanId: at.spanId } }
  }

  /** A record of the last decision may be written when the run is over. */
  #forgetOld(): void {
    for (const traced of [this.#runs, this.#threads])
      for (const [key, { span }] of traced) {
        if (traced.size <= MOST_KEPT) break
        if (!span.isRecording()) traced.delete(key)
      }
  }

  #tracedOf({ run, thread }: DecisionRecord): Traced | undefined {
    return this.#runs.get(run) ?? (thread === undefined ? undefined : this.#threads.get(thread))
  }

  #open(traced: Traced, key: string, parent: Context, name: string, attributes: Attributes): void {
    const span = this.#tracer.startSpan(name, { attributes }, parent)
    const spans = traced.open.get(key) ?? []
    spans.push({ span, context: trace.setSpan(parent, span) })
    traced.open.set(key, spans)
  }
}

/** Decisions go to the operator's sink with the trace they belong to, and become spans. */
export const traced = (tracing: Tracing, sink: DecisionSink | undefined): DecisionSink => ({
  ...(sink?.required === undefined ? {} : { required: sink.required }),
  write(record) {
    tracing.write(record)
    return sink?.write(tracing.placed(record))
  },
})

const keyOf = (...steps: readonly string[]) => JSON.stringify(steps)
const nodeKey = ({ path, nodeName }: AtNode) => keyOf('node', ...path, nodeName)
const modelKey = ({ path, nodeName, model }: AtNode & { model: string }) => keyOf('model', ...path, nodeName, model)
const toolKey = ({ path, nodeName, toolCallId }: AtNode & { toolCallId: string }) =>
  keyOf('tool', ...path, nodeName, toolCallId)

function nodeSpan({ nodeName, nodeType, attempt }: AtNode & { attempt: number }): readonly [string, Attributes] {
  const attributes = { [NAMES.node]: nodeName, [NAMES.nodeType]: nodeType, [NAMES.attempt]: attempt }
  if (nodeType !== 'AgentNode') return [`node ${nodeName}`, { ...attributes, [NAMES.spanKind]: 'CHAIN' }]
  const agent = { [NAMES.operation]: 'invoke_agent', [NAMES.agent]: nodeName, [NAMES.spanKind]: 'AGENT' }
  return [`invoke_agent ${nodeName}`, { ...attributes, ...agent }]
}

const modelSpan = ({ model }: { readonly model: string }): readonly [string, Attributes] => [
  `chat ${model}`,
  { [NAMES.operation]: 'chat', [NAMES.model]: model, [NAMES.spanKind]: 'LLM' },
]

function toolSpan({ toolName, toolCallId }: RunEvent & { type: 'tool_call' }): readonly [string, Attributes] {
  const attributes = { [NAMES.operation]: 'execute_tool', [NAMES.tool]: toolName, [NAMES.toolCall]: toolCallId }
  return [`execute_tool ${toolName}`, { ...attributes, [NAMES.spanKind]: 'TOOL' }]
}

const spent = ({ usage, finishReason }: RunEvent & { type: 'model_result' }): Attributes => ({
  ...(usage === undefined ? {} : { [NAMES.inputTokens]: usage.inputTokens, [NAMES.outputTokens]: usage.outputTokens }),
  ...(finishReason === undefined ? {} : { [NAMES.finishReasons]: [finishReason] }),
})

const contextOf = ({ open, context: root }: Traced, key: string): Context => open.get(key)?.at(-1)?.context ?? root

/** A child run's path ends with the node that started it, and its own name. */
const parentOfNode = (traced: Traced, { path }: AtNode): Context =>
  contextOf(traced, keyOf('node', ...path.slice(0, -1)))

const inNode = (traced: Traced, event: AtNode): Context => contextOf(traced, nodeKey(event))

function end({ open }: Traced, key: string, error?: ShownError, attributes: Attributes = {}): void {
  const span = open.get(key)?.pop()?.span
  if (span === undefined) return
  span.setAttributes(attributes)
  fail(span, error)
  span.end()
}

/** What an error says may hold what the run is about; its kind does not. */
function fail(span: Span, error: ShownError | undefined): void {
  if (error === undefined) return
  span.setAttribute(NAMES.errorType, error.code ?? error.name)
  span.setStatus({ code: SpanStatusCode.ERROR })
}
