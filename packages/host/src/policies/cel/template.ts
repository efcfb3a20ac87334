import { isObject, type Json, SluiceError } from '@sluice/core'
import { compileExpression, type Expression, ExpressionFault, type Values } from './expression.ts'
import type { Site } from './shown.ts'

/** Makes a value of what is shown. @throws SluiceError `POLICY_EXPRESSION`. */
export type Template = (values: Values) => Json

/** Told what is wrong with a part of a template: the way to its text, and where in that. */
export type OnFault = (path: readonly (string | number)[], fault: ExpressionFault) => void

/**
 * Compiles a value with expressions in its texts. A text that is one `${…}` becomes whatever that gives; in a longer text, each
 * is put in as text. `$${` stands for `${`.
 *
 * @param what names the template in errors: `reason of rule "x"`.
 */
export function compileTemplate(value: Json, site: Site, what: string, onFault: OnFault): Template {
  if (typeof value === 'string') return textTemplate(value, site, what, (fault) => onFault([], fault))
  const compile = (item: Json, key: string | number) =>
    compileTemplate(item, site, what, (path, fault) => onFault([key, ...path], fault))
  if (Array.isArray(value)) {
    const items = (value as readonly Json[]).map(compile)
    return (values) => items.map((item) => item(values))
  }
  if (isObject(value)) {
    const members = Object.entries(value as { readonly [key: string]: Json }).map(
      ([key, item]) => [key, compile(item, key)] as const,
    )
    return (values) => Object.fromEntries(members.map(([key, make]) => [key, make(values)]))
  }
  return () => value
}

type Part = string | Expression

function textTemplate(text: string, site: Site, what: string, onFault: (fault: ExpressionFault) => void): Template {
  const parts: Part[] = []
  try {
    for (const piece of piecesOf(text)) {
      parts.push(typeof piece === 'string' ? piece : compiled(piece, site, what))
    }
  } catch (fault) {
    if (!(fault instanceof ExpressionFault)) throw fault
    onFault(fault)
  }
  const [first] = parts
  if (first === undefined) return () => ''
  if (parts.length === 1)
    return typeof first === 'string' ? () => first : (values) => json(first.evaluate(values), what)
  return (values) => parts.map((part) => textOf(part, values, what)).join('')
}

function compiled({ source, at }: Placed, site: Site, what: string): Expression {
  try {
    return compileExpression(source, [site], 'any', what)
  } catch (fault) {
    throw fault instanceof ExpressionFault ? new ExpressionFault(fault.message, at + fault.index) : fault
  }
}

/** An expression in a text, and where it begins. */
interface Placed {
  readonly source: string
  readonly at: number
}

function piecesOf(text: string): readonly (string | Placed)[] {
  const pieces: (string | Placed)[] = []
  let plain = ''
  for (let i = 0; i < text.length; i++) {
    if (text.startsWith('$${', i)) {
      plain += '${'
      i += 2
    } else if (text.startsWith('${', i)) {
      const end = endOf(text, i + 2)
      if (plain !== '') pieces.push(plain)
      plain = ''
      pieces.push({ source: text.slice(i + 2, end), at: i + 2 })
      i = end
    } else plain += text[i]
  }
  if (plain !== '') pieces.push(plain)
  return pieces
}

/** The `}` that closes an expression; braces of its maps and in its texts are its own. */
function endOf(text: string, from: number): number {
  let open = 0
  let quote = ''
  for (let i = from; i < text.length; i++) {
    const char = text[i] as string
    if (quote !== '') {
      if (char === '\\') i++
      else if (char === quote) quote = ''
    } else if (char === '"' || char === "'") quote = char
    else if (char === '{') open++
    else if (char === '}' && open-- === 0) return i
  }
  throw new ExpressionFault('"${" is not closed; write "$${" where it is meant as text', from - 2)
}

function textOf(part: Part, values: Values, what: string): string {
  if (typeof part === 'string') return part
  const value = json(part.evaluate(values), what)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** What CEL gives as JSON: its whole numbers are bigints. */
function json(value: unknown, what: string): Json {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'number':
      return value
    case 'bigint':
      return Number(value)
  }
  if (value === null) return null
  if (Array.isArray(value) || value instanceof Set) return [...value].map((item) => json(item, what))
  if (!isObject(value) || ![Object.prototype, null].includes(Object.getPrototypeOf(value)))
    throw new SluiceError('POLICY_EXPRESSION', `${what} gives something that is not JSON.`)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, json(item, what)]))
}
