import type { SluiceError } from '../errors/error.ts'
import type { Timers } from '../seams/site.ts'

/**
 * Runs something that may take at most `ms` milliseconds. When the time is over, its signal aborts and the promise rejects
 * with the error `over` makes, whether or not the work takes notice.
 */
export function withDeadline<Value>(
  timers: Timers,
  ms: number,
  outer: AbortSignal,
  over: (ms: number) => SluiceError,
  work: (signal: AbortSignal) => Value | PromiseLike<Value>,
): Promise<Value> {
  const controller = new AbortController()
  const relay = () => controller.abort(outer.reason)
  outer.addEventListener('abort', relay, { once: true })
  if (outer.aborted) relay()
  return new Promise<Value>((resolve, reject) => {
    const timer = timers.set(ms, () => {
      const error = over(ms)
      reject(error)
      controller.abort(error)
    })
    const settle =
      <T>(then: (value: T) => void) =>
      (value: T) => {
        timers.clear(timer)
        outer.removeEventListener('abort', relay)
        then(value)
      }
    Promise.resolve()
      .then(() => work(controller.signal))
      .then(settle(resolve), settle(reject))
  })
}
