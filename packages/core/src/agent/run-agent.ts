import { SluiceError } from '../errors/error.ts'
import type { Runnable } from '../graph/graph.ts'
import { getDefaultRuntime, type Runtime } from '../run/runtime.ts'
import type { RunOptions } from '../run/scope.ts'
import type { Ask } from '../store/records.ts'

/** An agent waits for people where its answer was wanted. Answer `asks` with `agent.resume(thread, answers)`. */
export class RunInterruptedError extends SluiceError {
  override readonly name = 'RunInterruptedError'
  readonly thread: string
  readonly asks: readonly Ask[]

  constructor(thread: string, branch: string | undefined, asks: readonly Ask[]) {
    super(
      'RUN_INTERRUPTED',
      `thread "${thread}" waits for ${asks.map(({ key }) => `"${key}"`).join(', ')} and has no answer yet. Resume it with what people say.`,
      { thread, ...(branch === undefined ? {} : { branch }) },
    )
    this.thread = thread
    this.asks = asks
  }
}

/**
 * Tells an agent one thing and hands back the text of its answer; empty where it would not answer.
 *
 * @throws RunInterruptedError `RUN_INTERRUPTED` when it waits for people; the very error that ended its run, if one did.
 */
export async function runAgent<Update>(
  agent: Runnable<{ readonly finalText: string | null }, Update | string>,
  message: string,
  { runtime = getDefaultRuntime(), ...options }: RunOptions & { readonly runtime?: Runtime } = {},
): Promise<string> {
  const { status, state, asks, thread = '', branch } = await runtime.run(agent, message, options)
  if (status === 'paused') throw new RunInterruptedError(thread, branch, asks)
  return state.finalText ?? ''
}
