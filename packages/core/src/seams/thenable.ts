/** Only what has a `then` is awaited: an await that is not needed costs a turn of the microtask queue. */
export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
