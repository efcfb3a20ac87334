import type { RunEvent } from '@sluice/core'
import type { RunEntry } from '@sluice/host'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { RunWatcher } from './watcher.ts'

/** What is known when somebody asks for the figures. */
export interface Standing {
  readonly underWay: number
  /** Requests that wait for their turn. */
  readonly queued: number
  /** Open questions. */
  readonly asks: number
}

const SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300]

/** What a label says of a flow, model or tool that a request brought: its name is the caller's, and there may be any number. */
const BROUGHT = '(request)'

/** The figures of `/metrics`. Labels are names that the operator chose, so that no caller can make more of them. */
export class Metrics implements RunWatcher {
  readonly registry = new Registry()
  readonly #standing: () => Promise<Standing>
  readonly #runs = this.#counter('runs_total', 'Runs that have ended.', ['flow', 'status'])
  readonly #seconds = new Histogram({
    name: 'sluice_run_duration_seconds',
    help: 'How long runs took.',
    labelNames: ['flow', 'status'],
    buckets: SECONDS,
    registers: [this.registry],
  })
  readonly #verdicts = this.#counter('verdicts_total', 'Verdicts that changed something, or in shadow would have.', [
    'policy',
    'seam',
    'half',
    'verdict',
    'mode',
  ])
  readonly #requests = this.#counter('model_requests_total', 'Requests to models.', ['model', 'outcome'])
  readonly #tokens = this.#counter('model_tokens_total', 'Tokens, as models count them.', ['model', 'direction'])
  readonly #tools = this.#counter('tool_calls_total', 'Calls of tools that have come to an end.', ['tool', 'outcome'])
  readonly #nodes = this.#counter('node_attempts_failed_total', 'Attempts at nodes that failed.', ['flow'])
  readonly #refused = this.#counter('requests_refused_total', 'Requests that were not let in.', ['code'])

  constructor(standing: () => Promise<Standing>) {
    this.#standing = standing
    collectDefaultMetrics({ register: this.registry, prefix: 'sluice_' })
    const gauges = {
      underWay: this.#gauge('runs_under_way', 'Runs under way in this process.'),
      queued: this.#gauge('requests_queued', 'Requests that wait for their turn.'),
      asks: this.#gauge('asks_open', 'Questions that nobody has answered yet.'),
    }
    this.#set = async () => {
      const now = await this.#standing()
      for (const name of ['underWay', 'queued', 'asks'] as const) gauges[name].set(now[name])
    }
  }

  readonly #set: () => Promise<void>

  /** In the format of Prometheus. */
  async text(): Promise<string> {
    await this.#set()
    return this.registry.metrics()
  }

  /** A request was answered with this code before it could do anything. */
  refused(code: string): void {
    this.#refused.inc({ code })
  }

  event(entry: RunEntry, event: RunEvent): void {
    switch (event.type) {
      case 'decision': {
        const { policy, seam, half, action, mode = 'enforce' } = event
        if (policy !== undefined) this.#verdicts.inc({ policy, seam, half, verdict: action, mode })
        return
      }
      case 'model_result': {
        const model = nameIn(entry, event.model)
        this.#requests.inc({ model, outcome: event.error === undefined ? 'ok' : 'failed' })
        if (event.usage === undefined) return
        this.#tokens.inc({ model, direction: 'input' }, event.usage.inputTokens)
        this.#tokens.inc({ model, direction: 'output' }, event.usage.outputTokens)
        return
      }
      case 'tool_result': {
        const outcome = event.refused !== undefined ? 'refused' : event.error !== undefined ? 'failed' : 'ok'
        this.#tools.inc({ tool: nameIn(entry, event.toolName), outcome })
        return
      }
      case 'node_error':
        this.#nodes.inc({ flow: flowIn(entry) })
    }
  }

  ended(entry: RunEntry): void {
    const { ending, at, endedAt = at } = entry
    if (ending === undefined) return
    const labels = { flow: flowIn(entry), status: ending.status }
    this.#runs.inc(labels)
    this.#seconds.observe(labels, (endedAt - at) / 1_000)
  }

  #counter<Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> {
    return new Counter({ name: `sluice_${name}`, help, labelNames: [...labelNames], registers: [this.registry] })
  }

  #gauge(name: string, help: string): Gauge {
    return new Gauge({ name: `sluice_${name}`, help, registers: [this.registry] })
  }
}

const flowIn = ({ flow }: RunEntry): string => ('name' in flow ? flow.name : BROUGHT)

const nameIn = ({ flow }: RunEntry, name: string): string => ('name' in flow ? name : BROUGHT)
