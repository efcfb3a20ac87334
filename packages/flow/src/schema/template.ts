import type { Json } from '@sluice/core'

/** `{{ name }}`, with or without blanks; nothing else is read in a template. */
const PLACEHOLDER = /\{\{\s*(\w+)\s*\}\}/g

/** The names that a template asks for, each once, in their order. */
export function placeholders(template: string): readonly string[] {
  return [...new Set([...template.matchAll(PLACEHOLDER)].map((match) => match[1] as string))]
}

/**
 * Puts values into a template, in one pass: what comes in is never read as a template again. Text as it is, `null` as
 * nothing, the rest as JSON text. A placeholder without a value stays as it is.
 */
export function render(template: string, values: Readonly<Record<string, Json | undefined>>): string {
  return template.replace(PLACEHOLDER, (placeholder, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value === undefined) return placeholder
    return typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value)
  })
}
