import type { RunEvent } from '@sluice/core'
import pc from 'picocolors'
import { escapeControls, escapeText } from './escape.ts'

type Colors = ReturnType<typeof pc.createColors>

export interface ProgressOptions {
  readonly write: (text: string) => void
  readonly colors: boolean
  readonly verbose: boolean
  /** Whether the text of models is what a person waits for, and not only a sign that something happens. */
  readonly talk?: boolean
  readonly now: () => number
}

/** Arguments and values are cut to this many characters on a line, unless everything is to be shown. */
const MAX_VALUE_LENGTH = 160

/** Tells a person how a run goes, one line for each thing that happened, as it happens. */
export class Progress {
  readonly #options: ProgressOptions
  readonly #colors: Colors
  readonly #startedAt = new Map<string, number>()
  #inText = false

  constructor(options: ProgressOptions) {
    this.#options = options
    this.#colors = pc.createColors(options.colors)
  }

  show(event: RunEvent): void {
    const line = event.type === 'token' ? this.#token(event.text) : this.#lineOf(event)
    if (line !== undefined) this.#write(`${'  '.repeat(this.#depth(event))}${line}`)
  }

  /** A line that is no event of the run. */
  line(text: string): void {
    this.#write(`  ${escapeControls(text)}`)
  }

  #write(line: string): void {
    if (this.#inText) this.#options.write('\n')
    this.#inText = false
    this.#options.write(`${line}\n`)
  }

  #depth({ path, type }: RunEvent): number {
    const nested = Math.floor((path.length - 1) / 2)
    return type === 'run_start' || type === 'run_end' ? nested : nested + 1
  }

  #token(text: string): undefined {
    if (this.#options.talk) {
      this.#inText = !text.endsWith('\n')
      this.#options.write(escapeText(text))
      return
    }
    if (!this.#inText) this.#options.write('    ')
    this.#inText = true
    this.#options.write(this.#colors.dim(escapeControls(text)))
  }

  #lineOf(event: RunEvent): string | undefined {
    const { bold, dim, green, red, yellow, cyan } = this.#colors
    const { verbose } = this.#options
    switch (event.type) {
      case 'run_start':
        return `${bold('●')} ${bold(escapeControls(event.graphName))}`
      case 'node_start':
        this.#startedAt.set(keyOf(event), this.#options.now())
        return verbose
          ? dim(`… ${name(event)} ${event.nodeType}${event.attempt > 1 ? `, attempt ${event.attempt}` : ''}`)
          : undefined
      case 'node_complete': {
        const by = event.substituted === undefined ? '' : `  result supplied by ${escapeControls(event.substituted)}`
        return `${green('✓')} ${bold(name(event))}  ${dim(this.#took(event))}${by}${verbose ? dim(`  ${this.#value(event.output)}`) : ''}`
      }
      case 'node_error':
        return `${red('✗')} ${bold(name(event))}  attempt ${event.attempt} failed: ${escapeControls(event.error.message)}`
      case 'tool_call':
        return `${cyan('→')} ${name(event)}  ${escapeControls(event.toolName)} ${this.#value(event.toolArgs)}`
      case 'tool_result':
        return this.#toolResult(event)
      case 'warning':
        return `${yellow('!')} ${event.seam === undefined ? '' : `${yellow(`${event.seam}.${event.half}`)}  `}${escapeControls(event.message)}`
      case 'decision':
        return this.#decision(event)
      case 'retracted':
        return dim(`↶ ${name(event)}  what was said so far is taken back`)
      case 'custom':
        return verbose ? dim(`· ${name(event)}  ${this.#value(event.data)}`) : undefined
      case 'plugin_log':
        return event.level === 'debug' && !verbose
          ? undefined
          : dim(`· ${escapeControls(event.nodeType)}  ${event.level}: ${escapeControls(event.message)}`)
      case 'run_end':
        return this.#end(event)
      default:
        return verbose && 'data' in event
          ? dim(`· ${escapeControls(event.type)}  ${this.#value(event.data)}`)
          : undefined
    }
  }

  #toolResult(event: RunEvent & { type: 'tool_result' }): string | undefined {
    const { red, dim } = this.#colors
    const at = `${name(event)}  ${escapeControls(event.toolName)}`
    if (event.refused !== undefined) return `${red('✗')} ${at}  refused: ${escapeControls(event.refused)}`
    if (event.error !== undefined) return `${red('✗')} ${at}  failed: ${escapeControls(event.error.message)}`
    return this.#options.verbose ? dim(`← ${at}  ${this.#value(event.toolResult)}`) : undefined
  }

  /** Most decisions are told by a warning, in words; what is left is what changed quietly. */
  #decision(event: RunEvent & { type: 'decision' }): string | undefined {
    if (event.mode !== 'shadow' && event.action !== 'modify' && event.action !== 'fail') return undefined
    const { yellow, dim } = this.#colors
    const where = event.subject.toolName ?? event.subject.nodeName ?? event.subject.graphName ?? ''
    const what = event.action === 'modify' ? 'changed what is given to' : 'failed'
    const who = event.policy === undefined ? `middleware "${event.middleware}"` : `policy "${event.policy}"`
    const why = event.reason === undefined ? '' : `: ${event.reason}`
    if (event.mode === 'shadow') {
      return dim(
        escapeControls(`? ${event.seam}.${event.half}  ${who}, in shadow, would ${event.action} at "${where}"${why}`),
      )
    }
    return `${yellow('!')} ${yellow(`${event.seam}.${event.half}`)}  ${escapeControls(who)} ${what} "${escapeControls(where)}"${escapeControls(why)}`
  }

  #end(event: RunEvent & { type: 'run_end' }): string | undefined {
    const { red, yellow, bold } = this.#colors
    if (event.status === 'completed') return undefined
    if (event.status === 'paused') return `${yellow('‖')} ${bold('paused')}`
    const { code, message = '' } = event.error ?? {}
    return `${red('✗')} ${bold(event.status)}  ${code === undefined ? '' : `${escapeControls(code)}  `}${escapeControls(message)}`
  }

  #took(event: { path: readonly string[]; nodeName: string }): string {
    const now = this.#options.now()
    const ms = now - (this.#startedAt.get(keyOf(event)) ?? now)
    return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
  }

  #value(value: unknown): string {
    const text = escapeControls(JSON.stringify(value) ?? '')
    return this.#options.verbose || text.length <= MAX_VALUE_LENGTH ? text : `${text.slice(0, MAX_VALUE_LENGTH)}…`
  }
}

const name = (event: { nodeName: string }): string => escapeControls(event.nodeName)

const keyOf = (event: { path: readonly string[]; nodeName: string }): string =>
  [...event.path, event.nodeName].join('\u0000')
