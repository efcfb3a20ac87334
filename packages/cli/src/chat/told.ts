import { isObject, type Json } from '@sluice/core'
import { escapeControls, escapeText, jsonText } from '../render/escape.ts'
import type { Standing } from './conversation.ts'

/** What a turn came to, or what was said, for a person: the one text, else JSON. */
export function saidText(values: Json | undefined): string {
  const [only, ...others] = isObject(values) ? Object.values(values) : []
  return others.length === 0 && typeof only === 'string' ? escapeText(only) : jsonText(values ?? {}, 2)
}

/** A thread as a conversation: what was said, asked and answered. */
export const historyLines = (records: readonly object[]): readonly string[] =>
  records.flatMap((record) => historyLine(record as Readonly<Record<string, Json | undefined>>))

function historyLine({
  type,
  input,
  key,
  value,
  by,
  status,
  result,
  error,
}: Readonly<Record<string, Json | undefined>>) {
  if (type === 'start') return [`› ${saidText(input)}`]
  if (type === 'answer')
    return [`? ${escapeControls(String(key))}  ${jsonText(value)}  by ${escapeControls(String(by))}`]
  if (type !== 'end' || status === 'paused') return []
  if (status === 'completed') return [saidText(result)]
  const why = isObject(error) ? `  ${String(error.code ?? '')}  ${String(error.message ?? '')}` : ''
  return [`✗ ${escapeControls(`${status}${why}`)}`]
}

export const standingLines = (policies: readonly Standing[]): readonly string[] =>
  policies.length === 0
    ? ['no policy is installed']
    : policies.map(({ name, mode, at }) => escapeControls(`${name}  ${mode}  ${at.join(', ')}`))
