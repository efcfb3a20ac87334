/**
 * What the command's exit code says. `wrong`: the call, a plugin, the document or where the thread stands, so nothing was run.
 * `paused`: the run waits for answers on its thread.
 */
export const EXIT = { completed: 0, failed: 1, wrong: 2, paused: 3 } as const

/** Signals that cancel a run; the exit code is then 128 and the signal's number, as shells have it. */
export const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const

export type Signal = keyof typeof SIGNALS

export const exitCodeOf = (signal: Signal): number => 128 + SIGNALS[signal]
