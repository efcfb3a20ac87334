import type { JsonObject } from '@sluice/core'
import type { CheckedFlow } from '@sluice/flow'
import { HttpError } from '../../http/errors.ts'

/** A message of a client's conversation. */
export interface Said {
  readonly role: string
  readonly content: string
  /** Kinds of parts that are no text. */
  readonly other?: readonly string[]
}

interface Given {
  /** What the client gives by name. */
  readonly inputs?: Readonly<Record<string, unknown>>
  /** What it has besides, of which the flow takes what it declares. */
  readonly state?: unknown
}

/**
 * What a conversation comes to as the inputs of a flow: what is given by name; the conversation itself, as `{ role, content }`,
 * for an input `messages` that is a list; the last thing the user said for the one text that is still missing; and of the
 * client's state what the flow declares.
 *
 * @throws HttpError `REQUEST_INVALID` where the user's last message has parts that are no text.
 */
export function inputsOf(
  { inputs: declared }: Pick<CheckedFlow, 'inputs'>,
  said: readonly Said[],
  given: Given,
): JsonObject {
  const inputs: Record<string, unknown> = { ...given.inputs }
  const missing = () => declared.filter(({ title }) => !Object.hasOwn(inputs, title))
  if (missing().some(({ title, type }) => title === 'messages' && type.kind === 'array'))
    inputs.messages = said.map(({ role, content }) => ({ role, content }))
  const text = lastOfUser(said)
  const title = textInput(missing())
  if (text !== undefined && title !== undefined) inputs[title] = text
  const { state } = given
  if (typeof state === 'object' && state !== null)
    for (const { title } of missing()) if (Object.hasOwn(state, title)) inputs[title] = (state as JsonObject)[title]
  return inputs as JsonObject
}

/** The one text that has to be given; or, where none has to, the one that may be. */
function textInput(missing: CheckedFlow['inputs']): string | undefined {
  const texts = missing.filter(({ type }) => type.kind === 'string')
  const needed = texts.filter((input) => input.default === undefined)
  const [only, ...others] = needed.length > 0 ? needed : texts
  return others.length > 0 ? undefined : only?.title
}

function lastOfUser(said: readonly Said[]): string | undefined {
  const last = said.findLast(({ role }) => role === 'user')
  if (last?.other !== undefined && last.other.length > 0)
    throw new HttpError(
      'REQUEST_INVALID',
      `a flow takes text here, and the last message also has: ${last.other.slice(0, 5).join(', ')}.`,
    )
  return last?.content
}

/** A message whose content is a text or a list of parts, each with a `type`. */
export function readContent(role: string, content: unknown): Said {
  if (typeof content === 'string') return { role, content }
  const parts = (Array.isArray(content) ? content : []) as readonly { type?: unknown; text?: unknown }[]
  const texts = parts.filter(({ type, text }) => type === 'text' && typeof text === 'string')
  const other = parts.filter((part) => !texts.includes(part)).map(({ type }) => String(type).slice(0, 40))
  return { role, content: texts.map(({ text }) => text).join('\n'), ...(other.length === 0 ? {} : { other }) }
}
