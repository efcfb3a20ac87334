// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/

const EVERY_CONTROL = new RegExp(CONTROLS, 'g')

export const hasControls = (text: string): boolean => CONTROLS.test(text)

/**
 * Makes text from documents, models and plugins safe to print: control characters, which could move the cursor, recolour or
 * fake lines, are shown as escapes. Newlines and tabs too, so that one event stays on its line.
 */
export const escapeControls = (text: string): string => text.replace(EVERY_CONTROL, asEscape)

/** The same for a text of several lines, which stay lines. */
export const escapeLines = (text: string): string => text.split('\n').map(escapeControls).join('\n')

/** A text that a person reads: its lines stay lines, and its tabs stay. */
export const escapeText = (text: string): string =>
  text.replace(EVERY_CONTROL, (char) => (char === '\n' || char === '\t' ? char : asEscape(char)))

/** A value as JSON that is safe to print: outside of its strings there is nothing to escape, and in them an escape is the same text. */
export const jsonText = (value: unknown, indent?: number): string =>
  escapeLines(JSON.stringify(value, null, indent) ?? 'null')

const NAMED: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

const asEscape = (char: string): string => NAMED[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Prints a value as a command's result: on one line, or for a person on a terminal on several. */
export function printJson(value: unknown): void {
  process.stdout.write(`${jsonText(value, process.stdout.isTTY ? 2 : undefined)}\n`)
}
