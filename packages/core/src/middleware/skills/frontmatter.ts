import { SluiceError } from '../../errors/error.ts'
import { isObject } from '../../json/json.ts'
import type { Awaitable } from '../../store/store.ts'

/** Reads the text between the two lines `---`: an object, whose `name` and `description` are what is used. */
export type FrontmatterReader = (text: string) => Awaitable<unknown>

/** What a `SKILL.md` says. */
interface SkillText {
  readonly name: string
  readonly description: string
  /** What stands after the frontmatter. */
  readonly content: string
}

const MAX_NAME = 64
const MAX_DESCRIPTION = 1_024

/**
 * Reads a `SKILL.md`.
 *
 * @param path where it is, for errors.
 * @throws SluiceError `SKILL_FORMAT` naming the path and what is wrong.
 */
export async function readSkillText(text: string, path: string, read: FrontmatterReader): Promise<SkillText> {
  const refuse = (why: string, cause?: unknown) =>
    new SluiceError('SKILL_FORMAT', `${path} ${why}.`, { file: path }, cause)
  const [first = '', ...lines] = text.split(/\r?\n/)
  if (!isBound(first)) throw refuse('does not begin with a line "---", a frontmatter, and another line "---"')
  const end = lines.findIndex(isBound)
  if (end < 0) throw refuse('has a frontmatter without a line "---" after it')
  const [front, content] = [lines.slice(0, end).join('\n'), lines.slice(end + 1).join('\n')]
  const members = await membersOf(front, read, refuse)
  const said = (name: string, most: number): string => {
    const value = members[name]
    if (typeof value !== 'string' || value.trim() === '') throw refuse(`needs a "${name}" in its frontmatter`)
    const line = value.trim().replace(/\s+/g, ' ')
    if (line.length > most) throw refuse(`has a "${name}" of ${line.length} characters; ${most} are the most`)
    return line
  }
  return { name: said('name', MAX_NAME), description: said('description', MAX_DESCRIPTION), content: content.trim() }
}

const isBound = (line: string): boolean => line.trimEnd() === '---'

async function membersOf(front: string, read: FrontmatterReader, refuse: (why: string, cause?: unknown) => Error) {
  try {
    const members = await read(front)
    if (isObject(members)) return members
  } catch (error) {
    throw refuse(`has a frontmatter that cannot be read: ${(error as Error).message.replace(/\.$/, '')}`, error)
  }
  throw refuse('has a frontmatter that is no list of members')
}

/**
 * Reads lines `key: value`, the values with or without quotes; empty lines and those that begin with `#` do not count. It is not
 * YAML: what goes over several lines is refused, and needs a reader that is handed in.
 */
export function readFlat(text: string): Readonly<Record<string, string>> {
  const members: Record<string, string> = Object.create(null)
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue
    const [, key, value] = /^([A-Za-z0-9_-]+):(?:[ \t]+(.*))?$/.exec(line) ?? []
    if (key === undefined) throw new TypeError(`line ${i + 1} is no "key: value"; a whole YAML parser can be handed in`)
    if (key in members) throw new TypeError(`line ${i + 1} has "${key}" a second time`)
    members[key] = unquoted(value?.trim() ?? '')
  }
  return { ...members }
}

function unquoted(value: string): string {
  const quote = value[0]
  const quoted = value.length > 1 && (quote === '"' || quote === "'") && value.endsWith(quote)
  return quoted ? value.slice(1, -1) : value
}
