import type { Timers } from './site.ts'

/**
 * Calls `then` after `ms` milliseconds, unless what this hands back is called before, or the signal aborts: then the timer goes
 * with it, so that nothing keeps the process alive.
 */
export function after(timers: Timers, signal: AbortSignal, ms: number, then: () => void): () => void {
  if (signal.aborted) return () => undefined
  const done = () => {
    timers.clear(timer)
    signal.removeEventListener('abort', done)
  }
  const timer = timers.set(ms, () => {
    done()
    then()
  })
  signal.addEventListener('abort', done, { once: true })
  return done
}

/** Waits; for ever, once the signal has aborted, and no longer than to the end of `until`. */
export const wait = (timers: Timers, signal: AbortSignal, ms: number, until?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const early = () => {
      done()
      resolve()
    }
    const done = after(timers, signal, until?.aborted ? 0 : ms, () => {
      until?.removeEventListener('abort', early)
      resolve()
    })
    until?.addEventListener('abort', early, { once: true })
  })
