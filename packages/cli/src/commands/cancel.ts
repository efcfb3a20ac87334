import { EXIT, exitCodeOf, SIGNALS, type Signal } from '../exit.ts'

export interface Cancel {
  readonly controller: AbortController
  /** The exit code it comes to. */
  readonly code: number
}

/**
 * The first Ctrl+C cancels the run, which then ends in order; the second ends the process at once. So do the end of the terminal
 * and, as `| head` does, of whoever reads the output.
 */
export function cancelFromOutside(): Cancel {
  const controller = new AbortController()
  const cancel = { controller, code: EXIT.failed as number }
  process.stdout.once('error', (error) => controller.abort(error))
  for (const name of Object.keys(SIGNALS) as Signal[]) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(exitCodeOf(name))
      cancel.code = exitCodeOf(name)
      controller.abort(new Error(`the process received ${name}`))
    })
  }
  return cancel
}
