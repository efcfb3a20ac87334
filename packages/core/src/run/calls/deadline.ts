import type { SluiceError } from '../../errors/error.ts'
import type { Timers } from '../../seams/site.ts'

/**
 * Runs something that may take at most `ms` milliseconds. When the time is over, the promise rejects with the error `over`
 * makes and its signal aborts, whether or not the work takes notice. Aborted from outside, nobody waits any more: the work is
 * told, and the clock stops. With `lastActive`, when something last happened, the time counts from there.
 */
export function withDeadline<Value>(
  timers: Timers,
  ms: number,
  outer: AbortSignal,
  over: (ms: number) => SluiceError,
  work: (signal: AbortSignal) => Value | PromiseLike<Value>,
  lastActive?: () => number,
): Promise<Value> {
  const controller = new AbortController()
  return new Promise<Value>((resolve, reject) => {
    const rings = () => {
      const left = lastActive === undefined ? 0 : lastActive() + ms - timers.now()
      if (left > 0) {
        timer = timers.set(left, rings)
        return
      }
      const error = over(ms)
      done()
      reject(error)
      controller.abort(error)
    }
    let timer = timers.set(ms, rings)
    const relay = () => {
      done()
      controller.abort(outer.reason)
    }
    const done = () => {
      timers.clear(timer)
      outer.removeEventListener('abort', relay)
    }
    outer.addEventListener('abort', relay)
    if (outer.aborted) relay()
    const settle =
      <T>(then: (value: T) => void) =>
      (value: T) => {
        done()
        then(value)
      }
    Promise.resolve()
      .then(() => work(controller.signal))
      .then(settle(resolve), settle(reject))
  })
}
