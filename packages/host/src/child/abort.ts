/** What waits for a signal. One listener each: a signal with many of them is slow, and Node warns about it. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>()

/** Calls `then` when the signal aborts; the function it returns takes that back. */
export function onAbort(signal: AbortSignal, then: () => void): () => void {
  const listeners = waiting.get(signal) ?? listen(signal)
  listeners.add(then)
  return () => listeners.delete(then)
}

function listen(signal: AbortSignal): Set<() => void> {
  const listeners = new Set<() => void>()
  waiting.set(signal, listeners)
  const tell = () => {
    for (const listener of listeners) listener()
  }
  signal.addEventListener('abort', tell, { once: true })
  return listeners
}
