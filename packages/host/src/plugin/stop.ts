import type { Child } from '../child/child.ts'

/** Milliseconds a plugin has to end by itself, once it was asked to and its stdin is closed. */
const STOP_GRACE_MS = 1_000
/** Milliseconds between the signal it can catch and the one it cannot. */
const KILL_AFTER_MS = 250

/** Waits for a program that was asked to end, and makes it end if it does not. */
export async function endChild(child: Child): Promise<void> {
  // An idle plugin keeps nobody waiting; one that is being ended does, or its end would never be seen.
  child.process.ref()
  child.process.stdin.end()
  const terminate = setTimeout(() => child.kill('SIGTERM'), STOP_GRACE_MS)
  const kill = setTimeout(() => child.kill('SIGKILL'), STOP_GRACE_MS + KILL_AFTER_MS)
  await child.ended
  clearTimeout(terminate)
  clearTimeout(kill)
}
