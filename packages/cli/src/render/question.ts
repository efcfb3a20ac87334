import type { Ask } from '@sluice/core'
import { ago } from './ago.ts'
import { escapeControls, escapeLines, jsonText } from './escape.ts'

/** Who asks and since when: `policy "ApprovalGate", 3 minutes ago`. */
export function askedBy({ askedBy: by, nodeName, askedAt }: Ask, now: number): string {
  const policy = by.startsWith('policy:') ? by.slice('policy:'.length) : undefined
  const who = policy !== undefined ? `policy "${policy}"` : by === 'graph' ? `node "${nodeName}"` : 'sluice'
  return `${escapeControls(who)}, ${ago(askedAt, now)}`
}

/** What is asked, for a person: a text as it is, anything else as JSON, and below what may be answered and until when. */
export function questionLines({ payload, schema, expiresAt }: Ask, now: number): readonly string[] {
  const text = typeof payload === 'string' ? escapeLines(payload) : jsonText(payload, 2)
  return [
    ...text.split('\n'),
    ...(schema === undefined ? [] : [`an answer fits ${jsonText(schema)}`]),
    ...(expiresAt === undefined ? [] : [expiresAt <= now ? 'it has expired' : `it expires ${ago(expiresAt, now)}`]),
  ]
}
