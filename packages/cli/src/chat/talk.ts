import type { Json, JsonObject, RunEvent } from '@sluice/core'
import { EXIT } from '../exit.ts'
import { printError } from '../render/error.ts'
import { escapeControls } from '../render/escape.ts'
import { askedBy, questionLines } from '../render/question.ts'
import { answering } from './answer.ts'
import { isCommand, obey, textOf } from './commands.ts'
import type { Conversation, OpenAsk } from './conversation.ts'
import { inputsOf } from './inputs.ts'
import type { Lines } from './lines.ts'
import type { Screen } from './screen.ts'

type End = RunEvent & { type: 'run_end' }

interface Followed {
  /** Nothing where it was refused, or lost. */
  readonly end: End | undefined
  /** The code of what refused it. */
  readonly refused: string | undefined
}

export interface TalkParts {
  readonly conversation: Conversation
  readonly lines: Lines
  readonly screen: Screen
  /** Inputs that every turn has. */
  readonly given: JsonObject
}

/** A conversation at a prompt, or in a pipe: a line is a turn, an answer to what is asked, or a command. */
export class Talk {
  readonly #parts: TalkParts
  /** How the last turn ended, as an exit code. */
  #code: number = EXIT.completed
  #run: AbortController | undefined
  #isLeaving = false
  #isWarned = false
  #isAsking = false

  constructor(parts: TalkParts) {
    this.#parts = parts
  }

  /** Until the person leaves; says how the last turn ended. @throws what refuses the first look at the thread. */
  async go(): Promise<number> {
    await this.#settle(await this.#parts.conversation.asks())
    for (;;) {
      const line = await this.#line('› ')
      if (line === undefined) return this.#code
      if (line.trim() === '') continue
      if (isCommand(line)) await this.#command(line)
      else await this.#turn(line)
    }
  }

  /** Ctrl+C: stops the run that is under way, which has to end at once (`now`) where it comes again; at the prompt twice leaves. */
  interrupt(): 'stopped' | 'now' | 'again' | 'leave' {
    if (this.#run !== undefined) {
      if (this.#run.signal.aborted) return 'now'
      this.#run.abort(new Error('stopped by Ctrl+C'))
      return 'stopped'
    }
    if (this.#isWarned) {
      this.leave()
      return 'leave'
    }
    this.#isWarned = true
    this.#parts.lines.startOver('  · Ctrl+C once more leaves')
    return 'again'
  }

  /** Stops the run that is under way, and leaves after it. */
  leave(why: Error = new Error('the conversation ends')): void {
    this.#isLeaving = true
    this.#run?.abort(why)
    this.#parts.lines.close()
  }

  async #line(prompt: string): Promise<string | undefined> {
    const line = this.#isLeaving ? undefined : await this.#parts.lines.next(prompt)
    this.#isWarned = false
    return this.#isLeaving ? undefined : line
  }

  async #turn(line: string): Promise<void> {
    const { conversation, given } = this.#parts
    const text = textOf(line)
    const { end } = await this.#follow((signal) =>
      conversation.turn(inputsOf(text, conversation.inputs, given), signal),
    )
    if (end !== undefined) await this.#settle(end.asks ?? [])
  }

  /** Puts each open question, one after the other, until none is left or something else was wanted. */
  async #settle(open: readonly OpenAsk[]): Promise<void> {
    const { conversation } = this.#parts
    let asks = open
    while (asks.length > 0) {
      this.#code = EXIT.paused
      const [ask] = asks as readonly [OpenAsk]
      const answer = await this.#ask(ask)
      if (answer === undefined) return
      const { end, refused } = await this.#follow((signal) => conversation.answer(ask, answer.value, signal))
      if (end !== undefined) asks = end.asks ?? []
      else if (refused !== 'ANSWER_INVALID') return
    }
  }

  async #ask(ask: OpenAsk): Promise<{ readonly value: Json } | undefined> {
    this.#isAsking = true
    try {
      return await this.#answerTo(ask)
    } finally {
      this.#isAsking = false
    }
  }

  /** The answer of a person; nothing where they leave, or go elsewhere. */
  async #answerTo(ask: OpenAsk): Promise<{ readonly value: Json } | undefined> {
    const { conversation, screen } = this.#parts
    const { hint, read } = answering(ask.schema)
    screen.lines(askLines(ask))
    const { thread } = conversation
    while (conversation.thread === thread) {
      screen.line(`  answer with ${hint}`)
      const line = await this.#line('? ')
      if (line === undefined) return undefined
      if (isCommand(line)) await this.#command(line)
      else {
        try {
          return { value: read(textOf(line)) }
        } catch (error) {
          printError(error)
        }
      }
    }
    return undefined
  }

  /** Follows a run to its end, or tells what refused it. */
  async #follow(begin: (signal: AbortSignal) => AsyncIterable<RunEvent>): Promise<Followed> {
    const { screen } = this.#parts
    const run = new AbortController()
    this.#run = run
    let end: End | undefined
    let refused: string | undefined
    try {
      for await (const event of begin(run.signal)) {
        screen.show(event)
        if (event.type === 'run_end' && event.path.length === 1) end = event
      }
    } catch (error) {
      refused = (error as { code?: string }).code
      printError(error)
    } finally {
      screen.settle()
      this.#run = undefined
    }
    if (end?.status === 'completed') screen.answer(end.result)
    this.#code = codeOf(end?.status)
    return { end, refused }
  }

  async #command(line: string): Promise<void> {
    const { conversation, screen } = this.#parts
    const waitsFor = (asks: readonly OpenAsk[]) => this.#waitsFor(asks)
    const goOver = (thread: string | undefined) => this.#goOver(thread)
    try {
      screen.lines(await obey(line, { conversation, waitsFor, goOver, leave: () => this.leave() }))
    } catch (error) {
      printError(error)
    }
  }

  /** At a question the others are only shown. */
  async #waitsFor(asks: readonly OpenAsk[]): Promise<readonly string[]> {
    if (asks.length === 0) return ['this thread waits for nothing']
    if (this.#isAsking) return asks.flatMap(askLines)
    await this.#settle(asks)
    return []
  }

  async #goOver(thread: string | undefined): Promise<void> {
    const { conversation, screen } = this.#parts
    conversation.open(thread)
    screen.line(`· thread ${conversation.thread}`)
    if (thread !== undefined) await this.#settle(await conversation.asks())
  }
}

function askLines(ask: OpenAsk): readonly string[] {
  const now = Date.now()
  return [
    `? ${escapeControls(ask.key)}  asked by ${askedBy(ask, now)}`,
    ...questionLines(ask, now).map((text) => `    ${text}`),
  ]
}

function codeOf(status: End['status'] | undefined): number {
  return status === 'completed' || status === 'paused' ? EXIT[status] : EXIT.failed
}
