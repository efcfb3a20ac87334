import type { ToolContext } from '@sluice/core'

/** What a tool is given when nobody runs it in a node: it can be stopped, and neither asks nor runs anything. */
export const toolContext = (signal: AbortSignal = new AbortController().signal): ToolContext => ({
  callId: 'c',
  signal,
  emit: () => undefined,
  ask: () => Promise.reject(new Error('nobody to ask')),
  run: () => Promise.reject(new Error('nothing to run in')),
  keptOf: () => {
    throw new Error('nothing is kept here')
  },
})
