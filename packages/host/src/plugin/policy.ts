import {
  admits,
  type ChatModel,
  type Consultation,
  type Half,
  isObject,
  type JsonObject,
  type KeptOptions,
  type Policy,
  type PolicyRules,
  type Seam,
  type ShownOutcome,
} from '@sluice/core'
import type { PluginProcess } from './process.ts'
import { textOf } from './text.ts'

export interface RemotePolicyOptions extends PolicyRules {
  readonly name: string
  readonly plugin: string
  readonly process: PluginProcess
  /** As the manifest writes it: `{ nodeError: ['after'] }`. */
  readonly seams: { readonly [seam: string]: readonly Half[] }
  readonly component: JsonObject
  readonly timeoutMs: number
  readonly stream?: 'hold' | 'pass'
  readonly model?: ChatModel
  readonly kept?: KeptOptions
}

/** A policy in another process. */
export class RemotePolicy implements Policy {
  declare readonly version?: string
  declare readonly origin?: string
  declare readonly mode?: Policy['mode']
  declare readonly onFailure?: Policy['onFailure']
  declare readonly breaker?: Policy['breaker']
  declare readonly match?: Policy['match']
  declare readonly fields?: Policy['fields']
  declare readonly mayModify?: Policy['mayModify']
  readonly name: string
  readonly plugin: string
  readonly component: JsonObject
  readonly timeoutMs: number
  readonly stream?: 'hold' | 'pass'
  readonly model?: ChatModel
  readonly kept?: KeptOptions
  readonly #process: PluginProcess
  /** By seam and half: the part of the params that is the same in every question, as text. */
  readonly #constant = new Map<string, string>()

  constructor(options: RemotePolicyOptions) {
    const { name, plugin, process, seams, component, timeoutMs, stream, model, kept, ...rules } = options
    Object.assign(this, rules)
    this.name = name
    this.plugin = plugin
    this.component = component
    this.timeoutMs = timeoutMs
    this.stream = stream
    this.model = model
    this.kept = kept
    this.#process = process
    for (const [seam, halves] of Object.entries(seams)) {
      for (const half of halves) {
        const same = { componentType: name, component, seam, admits: admits(seam as Seam, half) }
        this.#constant.set(`${seam}.${half}`, JSON.stringify(same).slice(0, -1))
      }
    }
  }

  subscribes(seam: Seam, half: Half): boolean {
    return this.#constant.has(`${seam}.${half}`)
  }

  /** Sends the question; whatever the plugin answers is read by the gate. */
  consult(consultation: Consultation): Promise<unknown> {
    const { seam, half } = consultation
    const same = this.#constant.get(`${seam}.${half}`)
    const call = this.#process.call(half, `${same}${questionText(consultation)}}`, consultation)
    // Not written down where it is set: such a function lives long, and with it what it sees.
    const giveUp = () => call.giveUp()
    consultation.onAbandon = giveUp
    return this.kept === undefined ? call.answer : call.answer.then((answer) => takeKept(answer, consultation))
  }
}

/** What the policy keeps goes back with its verdict. */
export function takeKept(answer: unknown, { kept }: Consultation): unknown {
  if (isObject(answer) && answer.kept !== undefined && answer.kept !== null) kept.update(() => answer.kept)
  return answer
}

function questionText(consultation: Consultation): string {
  const { policy, question, revisit, answered } = consultation
  const { site, subject, input, outcome, attempt, maxAttempts, substituted } = question
  const labels = site.labels.size === 0 ? '[]' : JSON.stringify([...site.labels])
  let text = `,"subject":${JSON.stringify(subject)},"attempt":${attempt},"maxAttempts":${maxAttempts}`
  text += `,"revisit":${revisit},"labels":${labels}`
  if (outcome !== undefined) text += `,"outcome":${outcomeText(outcome)}`
  if (input !== undefined || outcome === undefined) text += `,"input":${textOf(input)}`
  if (substituted !== undefined) text += `,"substituted":${JSON.stringify(substituted)}`
  if (answered !== undefined) text += `,"answered":${textOf(answered)}`
  if (policy.kept !== undefined) text += `,"kept":${JSON.stringify(consultation.kept.value)}`
  return text
}

const outcomeText = (outcome: ShownOutcome): string =>
  outcome.ok ? `{"ok":true,"value":${textOf(outcome.value)}}` : JSON.stringify(outcome)
