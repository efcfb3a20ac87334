import type { JsonObject, RunEvent } from '@sluice/core'
import type { PutAsk, RunEnding, RunLog } from '@sluice/host'
import type { RunEndEvent } from './way-on.ts'

const MOST_TOLD = 1_000

/** Events that are read from the log at once. */
export const EVENTS_AT_ONCE = 256

/** Warnings and decisions of a run. */
export type Told = Pick<RunEnding, 'warnings' | 'decisions'>

/** What the log says of a run that is taken over. */
export interface Before {
  readonly count: number
  readonly told: Told
  /** Events that call back what models had begun to say. */
  readonly retracted: readonly string[]
}

export const NOTHING: Before = { count: 0, told: { warnings: [], decisions: [] }, retracted: [] }

/** Keeps what an event tells of it. */
export function note(told: { warnings: JsonObject[]; decisions: JsonObject[] }, event: RunEvent): void {
  const list = event.type === 'warning' ? told.warnings : event.type === 'decision' ? told.decisions : undefined
  if (list === undefined || list.length >= MOST_TOLD) return
  const { type, ...said } = event
  list.push(said as unknown as JsonObject)
}

/** Counts the tokens of calls that have not come to an end: such a call is made anew, and says everything once more. */
function noteSaid(said: Map<string, RunEvent & { readonly type: 'retracted' }>, event: RunEvent): void {
  if (!('nodeName' in event) || event.nodeName === undefined) return
  const at = JSON.stringify([event.path, event.nodeName])
  if (event.type === 'token') {
    const { nodeName, nodeType, path } = event
    said.set(at, { type: 'retracted', nodeName, nodeType, path, tokens: (said.get(at)?.tokens ?? 0) + 1 })
  } else if (ENDS_SAYING.has(event.type)) said.delete(at)
}

const ENDS_SAYING: ReadonlySet<string> = new Set(['retracted', 'model_result', 'node_complete', 'node_error'])

export function endingOf(
  { status, result, error }: RunEndEvent,
  asks: readonly PutAsk[] | undefined,
  told: Told,
): RunEnding {
  return {
    status,
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error }),
    ...(asks === undefined ? {} : { asks }),
    ...told,
  }
}

/** What the log says of a run that another process has begun. */
export async function toldBefore(log: RunLog, id: string): Promise<Before> {
  const told = { warnings: [] as JsonObject[], decisions: [] as JsonObject[] }
  const said = new Map<string, RunEvent & { readonly type: 'retracted' }>()
  let count = 0
  for (;;) {
    const stored = await log.events(id, count, EVENTS_AT_ONCE)
    for (const { text } of stored) {
      const event = JSON.parse(text) as RunEvent
      note(told, event)
      noteSaid(said, event)
    }
    count += stored.length
    if (stored.length < EVENTS_AT_ONCE) break
  }
  return { count, told, retracted: [...said.values()].map((event) => JSON.stringify(event)) }
}
