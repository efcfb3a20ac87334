import { hasControls } from './escape.ts'

/** A word as a shell reads it back. What cannot be printed stands in the notation of bash, zsh and ksh: `$'\x1b'`. */
export function shellWord(text: string): string {
  if (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(text)) return text
  return hasControls(text) ? `$'${[...text].map(printable).join('')}'` : `'${text.replaceAll("'", "'\\''")}'`
}

/** Flags with their values; a value that begins with `-` would be read as a flag of its own. */
export function flagWords(flag: string, value: string): readonly string[] {
  return value.startsWith('-') ? [`${flag}=${value}`] : [flag, value]
}

function printable(char: string): string {
  if (char === "'" || char === '\\') return `\\${char}`
  if (!hasControls(char)) return char
  return [...Buffer.from(char)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')
}
