import type { JsonObject, RunEvent } from '@sluice/core'
import { type HostOptions, openHost } from '@sluice/host'
import { EXIT, exitCodeOf, SIGNALS, type Signal } from '../exit.ts'
import { faultText } from '../render/error.ts'
import { jsonText } from '../render/escape.ts'
import { LiveLine } from '../render/live-line.ts'
import { Progress } from '../render/progress.ts'
import { readFlags } from './flags.ts'
import { readJsonFlag } from './input.ts'
import type { RunFlags } from './run-options.ts'

/** Runs a flow and says how it ended, as an exit code. */
export async function runFlow(file: string, flags: RunFlags): Promise<number> {
  const input = flags.input === undefined ? {} : readJsonFlag('--input', flags.input)
  const shown = progressOf(flags)
  const host = await openHost({ ...readFlags(flags), ...spokenBy(shown) })
  try {
    const { flow, graph } = await host.loadFlow(file)
    for (const warning of flow.warnings) process.stderr.write(`${faultText(warning)}\n`)
    graph.plan.boundary?.checkInput(input as JsonObject)
    const cancel = cancelFromOutside()
    let end: (RunEvent & { type: 'run_end' }) | undefined
    for await (const event of host.runtime.stream(graph, input as JsonObject, { signal: cancel.signal })) {
      shown.show(event)
      if (flags.events) printEvent(event)
      if (event.type === 'run_end' && event.path.length === 1) end = event
    }
    shown.end()
    if (end?.status === 'completed' && !flags.events)
      process.stdout.write(`${jsonText(end.result, process.stdout.isTTY ? 2 : undefined)}\n`)
    return codeOf(end?.status, cancel)
  } finally {
    await host.close()
  }
}

function codeOf(status: string | undefined, { signal, code }: Cancel): number {
  if (status === 'completed') return EXIT.completed
  return signal.aborted ? code : EXIT.failed
}

interface Shown {
  show(event: RunEvent): void
  line(text: string): void
  /** Takes away what is not to stay. */
  end(): void
}

/** What a person is told: lines that stay and, on a terminal, one that says what runs just now. */
function progressOf({ verbose = false }: RunFlags): Shown {
  const { stderr } = process
  const now = () => performance.now()
  const live = new LiveLine({ write: (text) => stderr.write(text), now, columns: () => stderr.columns || 80 })
  const write = stderr.isTTY ? (text: string) => live.write(text) : (text: string) => void stderr.write(text)
  const colors = stderr.isTTY === true && process.env.NO_COLOR === undefined
  const progress = new Progress({ write, colors, verbose, now })
  const timer = stderr.isTTY ? setInterval(() => live.draw(), 1_000).unref() : undefined
  return {
    show(event) {
      live.follow(event)
      progress.show(event)
    },
    line: (text) => progress.line(text),
    end() {
      clearInterval(timer)
      if (stderr.isTTY) live.clear()
    },
  }
}

/** What plugins write for people, line by line, and what the host has to say of them. */
function spokenBy(shown: Shown): Pick<HostOptions, 'onWarning' | 'onStderr'> {
  return {
    onWarning: (message) => shown.line(`! ${message}`),
    onStderr: (plugin, text) => {
      for (const line of text.split('\n').filter((part) => part.trim() !== '')) shown.line(`· ${plugin}  ${line}`)
    },
  }
}

function printEvent(event: RunEvent): void {
  process.stdout.write(`${jsonText(event)}\n`)
}

/**
 * The first Ctrl+C cancels the run, which then ends in order; the second ends the process at once. So do the end of the terminal
 * and, as `| head` does, of whoever reads the output.
 */
function cancelFromOutside(): Cancel {
  const controller = new AbortController()
  const cancel = { signal: controller.signal, code: EXIT.failed as number }
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

interface Cancel {
  readonly signal: AbortSignal
  /** The exit code it comes to. */
  readonly code: number
}
