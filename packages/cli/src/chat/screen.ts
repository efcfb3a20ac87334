import type { Json, RunEvent } from '@sluice/core'
import { progressOf, type Shown } from '../commands/shown.ts'
import { saidText } from './told.ts'

/** What a person sees of a conversation. Answers go to stdout; how they came about, and everything else, to stderr. */
export class Screen {
  readonly #shown: Shown
  readonly #isOneTerminal = process.stdout.isTTY === true && process.stderr.isTTY === true
  /** The last text that was streamed without a break, and whether it may go on. */
  #streamed = ''
  #isOpen = false

  constructor(verbose: boolean | undefined) {
    this.#shown = progressOf({ verbose, talk: process.stderr.isTTY === true })
  }

  show(event: RunEvent): void {
    if (event.type === 'token') this.#streamed = this.#isOpen ? this.#streamed + event.text : event.text
    else if (event.type === 'retracted') this.#streamed = ''
    this.#isOpen = event.type === 'token'
    if (event.type !== 'run_start' || event.path.length > 1) this.#shown.show(event)
  }

  /** The answer of a turn, where a person has not just seen it come. */
  answer(result: Json | undefined): void {
    const text = saidText(result)
    const isSeen = this.#isOneTerminal && this.#streamed.trim() === text.trim()
    this.#streamed = ''
    if (!isSeen) process.stdout.write(`${text}\n`)
  }

  /** A line beside the conversation. */
  line(text: string): void {
    this.#shown.line(text)
  }

  /** Lines that are safe already. */
  lines(texts: readonly string[]): void {
    for (const text of texts) process.stderr.write(`${text.replaceAll(/^/gm, '  ')}\n`)
  }

  /** Takes away what is not to stay. */
  settle(): void {
    this.#shown.settle()
  }
}
