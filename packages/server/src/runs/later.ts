/** Waits, but not on when one of these aborts. */
export function later(ms: number, ...signals: readonly (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      for (const signal of signals) signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    for (const signal of signals) signal?.addEventListener('abort', done)
    if (signals.some((signal) => signal?.aborted)) done()
  })
}
