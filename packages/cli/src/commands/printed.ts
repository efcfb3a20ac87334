import { type RunEvent, SluiceError } from '@sluice/core'
import type { Host } from '@sluice/host'
import { printError } from '../render/error.ts'
import { jsonText } from '../render/escape.ts'
import type { RunFlags } from './run-options.ts'

/** Whether stdout tells what happens on the way; the result is then one of the things told. */
export const printsEvents = ({ events, protocol }: RunFlags): boolean => events === true || protocol !== undefined

/** What goes to stdout while a run goes on. */
export interface Printed {
  show(event: RunEvent): Promise<void> | void
  /** After the last event. Whether all could be printed. */
  finish(): Promise<boolean> | boolean
}

/**
 * Events as `--events` or `--protocol` ask for them, a line each.
 *
 * @param cancel ends the run whose events cannot be rendered.
 * @throws SluiceError `CLI_FLAGS` for both flags, `PLUGIN_PROTOCOL_UNKNOWN`.
 */
export function printedOf(flags: RunFlags, host: Host, cancel: AbortController): Printed {
  const { events, protocol } = flags
  if (events && protocol !== undefined) {
    throw new SluiceError(
      'CLI_FLAGS',
      '--events prints events as they are, and --protocol as it renders them; give one.',
    )
  }
  if (protocol !== undefined) return rendered(host, protocol, cancel)
  return { show: events ? printLine : () => {}, finish: () => true }
}

function rendered(host: Host, protocol: string, cancel: AbortController): Printed {
  const rendering = host.encoder(protocol).start()
  let failed = false
  const print = async (render: typeof rendering.finish) => {
    if (failed) return
    try {
      for (const frame of await render()) printLine(frame)
    } catch (error) {
      failed = true
      printError(error)
      cancel.abort(error)
    }
  }
  return {
    show: (event) => print(() => rendering.encode(event)),
    async finish() {
      await print(() => rendering.finish())
      return !failed
    },
  }
}

const printLine = (value: object) => void process.stdout.write(`${jsonText(value)}\n`)
