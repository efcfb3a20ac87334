import {
  admits,
  type ChatModel,
  type Consultation,
  type Half,
  type JsonObject,
  type Policy,
  type Seam,
  type ShownOutcome,
} from '@sluice/core'
import type { PluginProcess } from './process.ts'
import { textOf } from './text.ts'

export interface RemotePolicyOptions {
  readonly name: string
  readonly plugin: string
  readonly process: PluginProcess
  /** As the manifest writes it: `{ nodeError: ['after'] }`. */
  readonly seams: { readonly [seam: string]: readonly Half[] }
  readonly component: JsonObject
  readonly timeoutMs: number
  readonly stream?: 'hold' | 'pass'
  readonly model?: ChatModel
}

/** A policy in another process. */
export class RemotePolicy implements Policy {
  readonly name: string
  readonly plugin: string
  readonly component: JsonObject
  readonly timeoutMs: number
  readonly stream?: 'hold' | 'pass'
  readonly model?: ChatModel
  readonly #process: PluginProcess
  /** By seam and half: the part of the params that is the same in every question, as text. */
  readonly #constant = new Map<string, string>()

  constructor({ name, plugin, process, seams, component, timeoutMs, stream, model }: RemotePolicyOptions) {
    this.name = name
    this.plugin = plugin
    this.component = component
    this.timeoutMs = timeoutMs
    this.stream = stream
    this.model = model
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
    consultation.onAbandon = () => call.giveUp()
    return call.answer
  }
}

function questionText({ question, revisit, answered }: Consultation): string {
  const { site, subject, input, outcome, attempt, maxAttempts, substituted } = question
  const labels = site.labels.size === 0 ? '[]' : JSON.stringify([...site.labels])
  let text = `,"subject":${JSON.stringify(subject)},"attempt":${attempt},"maxAttempts":${maxAttempts}`
  text += `,"revisit":${revisit},"labels":${labels}`
  if (outcome !== undefined) text += `,"outcome":${outcomeText(outcome)}`
  if (input !== undefined || outcome === undefined) text += `,"input":${textOf(input)}`
  if (substituted !== undefined) text += `,"substituted":${JSON.stringify(substituted)}`
  if (answered !== undefined) text += `,"answered":${textOf(answered)}`
  return text
}

const outcomeText = (outcome: ShownOutcome): string =>
  outcome.ok ? `{"ok":true,"value":${textOf(outcome.value)}}` : JSON.stringify(outcome)
