import type { AskEntry, RunEntry } from '@sluice/host'

/** A run, as a client sees it. */
export function runView({ id, thread, branch, ending }: RunEntry) {
  const place = { thread, ...(branch === 'main' ? {} : { branch }) }
  if (ending === undefined) return { run: id, ...place, status: 'running' as const }
  const { status, result, error, asks, warnings, decisions } = ending
  return {
    run: id,
    ...place,
    status,
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error }),
    ...(asks === undefined ? {} : { asks: asks.map((ask) => ({ ...shownAsk(ask), run: id, ...place })) }),
    ...(warnings.length === 0 ? {} : { warnings }),
    ...(decisions.length === 0 ? {} : { decisions }),
  }
}

export const askView = ({ ask, run, thread, branch }: AskEntry) => ({
  ...shownAsk(ask),
  run,
  thread,
  ...(branch === 'main' ? {} : { branch }),
})

/** What an answerer has to know of a question. */
function shownAsk(ask: AskEntry['ask']) {
  const { id, key, askedBy, nodeName, payload, schema, askedAt, expiresAt, approvers, toolCallId } = ask
  return {
    id,
    key,
    askedBy,
    nodeName,
    payload,
    ...(schema === undefined ? {} : { schema }),
    askedAt,
    ...(expiresAt === undefined ? {} : { expiresAt }),
    ...(approvers === undefined ? {} : { approvers }),
    ...(toolCallId === undefined ? {} : { toolCallId }),
  }
}
