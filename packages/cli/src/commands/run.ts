import type { JsonObject, RunEvent } from '@sluice/core'
import { showFault } from '@sluice/flow'
import { openHost } from '@sluice/host'
import { EXIT } from '../exit.ts'
import { Progress } from '../render/progress.ts'
import { readFlags } from './flags.ts'
import { readJsonFlag } from './input.ts'
import type { RunFlags } from './run-options.ts'

/** Runs a flow and says how it ended, as an exit code. */
export async function runFlow(file: string, flags: RunFlags): Promise<number> {
  const input = flags.input === undefined ? {} : readJsonFlag('--input', flags.input)
  const host = await openHost(readFlags(flags))
  try {
    const { flow, graph } = await host.loadFlow(file)
    for (const warning of flow.warnings) process.stderr.write(`${showFault(warning)}\n`)
    const cancel = cancelOnSignals()
    const sinks = [progressOf(flags), ...(flags.events ? [printEvent] : [])]
    let end: (RunEvent & { type: 'run_end' }) | undefined
    for await (const event of host.runtime.stream(graph, input as JsonObject, { signal: cancel.signal })) {
      for (const sink of sinks) sink(event)
      if (event.type === 'run_end' && event.path.length === 1) end = event
    }
    if (end?.status === 'completed' && !flags.events)
      process.stdout.write(`${JSON.stringify(end.result, null, process.stdout.isTTY ? 2 : undefined)}\n`)
    return codeOf(end?.status, cancel)
  } finally {
    await host.close()
  }
}

function codeOf(status: string | undefined, { signal }: { readonly signal: AbortSignal }): number {
  if (status === 'completed') return EXIT.completed
  return signal.aborted ? EXIT.interrupted : EXIT.failed
}

function progressOf({ verbose = false }: RunFlags): (event: RunEvent) => void {
  const progress = new Progress({
    write: (text) => process.stderr.write(text),
    colors: process.stderr.isTTY === true && process.env.NO_COLOR === undefined,
    verbose,
    now: () => performance.now(),
  })
  return (event) => progress.show(event)
}

function printEvent(event: RunEvent): void {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}

/** The first Ctrl+C cancels the run, which then ends in order; the second ends the process at once. */
function cancelOnSignals(): AbortController {
  const controller = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(EXIT.interrupted)
      controller.abort(new Error(`the process received ${name}`))
    })
  }
  return controller
}
