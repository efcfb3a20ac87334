import type { ThreadRecord } from '@sluice/core'
import { escapeControls, jsonText } from './escape.ts'

/** Values are cut to this many characters. */
const MAX_VALUE_LENGTH = 160

/** A record of a thread on one line: when, what, and the gist of it. */
export function recordText(record: object): string {
  try {
    const { time, type } = record as ThreadRecord
    return `${new Date(time).toISOString()}  ${escapeControls(type).padEnd(8)}  ${gist(record as ThreadRecord)}`.trimEnd()
  } catch {
    return `cannot be read: ${value(record)}`
  }
}

function gist(record: ThreadRecord): string {
  switch (record.type) {
    case 'start':
      return `${name(record.graph)}  ${value(record.input)}`
    case 'resume':
    case 'continue':
      return ''
    case 'begin':
      return `${inside(record.within)}next: ${names(record.next.map(nodeOf))}`
    case 'step':
      return `${inside(record.within)}through: ${names(record.writes.map(({ task }) => task))}; ${record.next.length === 0 ? 'the last one' : `next: ${names(record.next.map(nodeOf))}`}`
    case 'task':
      return `${inside(record.within)}${name(record.task)} is through, others beside it are not`
    case 'retry':
      return `${inside(record.within)}${name(record.task)}, attempt ${record.attempt}`
    case 'failed':
      return `${inside(record.within)}${name(record.task)}: ${name(record.error.message)}`
    case 'call':
      return `${inside(record.within)}${record.kind} ${name(record.name)}  ${record.ok ? value(record.value) : `failed: ${name(record.error.message)}`}`
    case 'ask':
      return `${name(record.key)}  asked by ${name(record.askedBy)}  ${value(record.payload)}`
    case 'answer':
      return `${name(record.key)}  ${record.value === undefined ? 'nobody answered in time' : `${value(record.value)}  by ${name(record.by)}`}`
    case 'end':
      return endGist(record)
    case 'update':
      return value(record.values)
    case 'kept':
      return names([...(record.labels ?? []), ...(record.kept ?? []).map(({ by }) => by)])
    case 'snapshot':
      return `${inside(record.within)}all that is needed to go on`
  }
}

function endGist({ status, result, asks, error }: ThreadRecord & { type: 'end' }): string {
  if (status === 'completed') return `${status}  ${value(result ?? {})}`
  if (status === 'paused') return `${status}  waits for ${names(asks ?? [])}`
  return `${name(status)}  ${name(error?.code ?? '')}  ${name(error?.message ?? '')}`
}

const name = escapeControls

const names = (all: readonly string[]): string => all.map(name).join(', ') || 'nothing'

const nodeOf = (ready: string | { readonly node: string }): string => (typeof ready === 'string' ? ready : ready.node)

/** Where in the thread: the way down to it. */
const inside = (within: readonly string[] = []): string => (within.length === 0 ? '' : `${name(within.join('/'))}  `)

function value(of: unknown): string {
  const text = jsonText(of)
  return text.length <= MAX_VALUE_LENGTH ? text : `${text.slice(0, MAX_VALUE_LENGTH)}…`
}
