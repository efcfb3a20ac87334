import { escapeControls } from '../render/escape.ts'
import type { Conversation, OpenAsk } from './conversation.ts'
import { historyLines, standingLines } from './told.ts'

const COMMANDS: Readonly<Record<string, string>> = {
  '/help': 'what there is',
  '/new': 'begin a new thread',
  '/thread [id]': 'which thread this is, or go over to another one',
  '/history': 'what was said on this thread',
  '/asks': 'what this thread waits for',
  '/policies': 'who is consulted, and where',
  '/quit': 'leave; so does the end of the input',
}

/** What commands do beside telling something. */
export interface Doing {
  readonly conversation: Conversation
  /** Puts questions, or shows them. */
  waitsFor(asks: readonly OpenAsk[]): Promise<readonly string[]>
  goOver(thread: string | undefined): Promise<void>
  leave(): void
}

export const isCommand = (line: string): boolean => /^\/(?!\/)/.test(line.trimStart())

/** Two slashes at the beginning of a text stand for one. */
export const textOf = (line: string): string => (line.startsWith('//') ? line.slice(1) : line)

/** Does what a line that begins with a slash says, and gives lines to show, which are safe to print. */
export async function obey(line: string, doing: Doing): Promise<readonly string[]> {
  const { conversation } = doing
  const [name = '', ...words] = line.trim().split(/\s+/)
  const argument = words.join(' ')
  switch (name) {
    case '/help':
      return [
        ...Object.entries(COMMANDS).map(([command, does]) => `${command.padEnd(13)}  ${does}`),
        'A line that begins with // is a text that begins with /. Ctrl+C stops a run.',
      ]
    case '/new':
      await doing.goOver(undefined)
      return []
    case '/thread':
      if (argument === '') return [`thread ${escapeControls(conversation.thread)}`]
      await doing.goOver(argument)
      return []
    case '/history':
      return historyLines(await conversation.history())
    case '/asks':
      return doing.waitsFor(await conversation.asks())
    case '/policies':
      return standingLines(await conversation.policies())
    case '/quit':
      doing.leave()
      return []
    default:
      return [`there is no ${escapeControls(name)}; /help says what there is`]
  }
}
