import type { JsonObject, RunEvent, Store } from '@sluice/core'
import { openHost } from '@sluice/host'
import { EXIT } from '../exit.ts'
import { faultText } from '../render/error.ts'
import { printJson } from '../render/escape.ts'
import { type Cancel, cancelFromOutside } from './cancel.ts'
import { readFlags, runsFor } from './flags.ts'
import { readJsonFlag } from './input.ts'
import type { Kept } from './kept.ts'
import { type Printed, printedOf, printsEvents } from './printed.ts'
import type { RunFlags } from './run-options.ts'
import { progressOf, type Shown, spokenBy } from './shown.ts'

/** Runs a flow and says how it ended, as an exit code. */
export async function runFlow(file: string, flags: RunFlags): Promise<number> {
  const kept = await keep(file, flags)
  const store = kept?.store ?? (await storeOf(flags))
  const input = flags.input === undefined ? {} : readJsonFlag('--input', flags.input)
  try {
    if (kept?.lacksAnswer) return await kept.refuseWithQuestion()
    return await runOn(
      { kept, store },
      file,
      kept === undefined || kept.starts ? (input as JsonObject) : undefined,
      flags,
    )
  } finally {
    await store?.close()
  }
}

const THREAD_FLAGS = ['thread', 'branch', 'resume', 'answer', 'continue'] as const

/** What a thread needs is loaded when there is one: a run without should not wait for it. */
async function keep(file: string, flags: RunFlags): Promise<Kept | undefined> {
  const isOnThread = THREAD_FLAGS.some((name) => flags[name] !== undefined)
  if (!isOnThread && (flags.store === undefined || flags.principal !== undefined)) return undefined
  const { Kept } = await import('./kept.ts')
  return new Kept(file, flags)
}

/** What policies keep of whoever it runs for outlives the run, also where no thread does. */
async function storeOf({ principal, store }: RunFlags): Promise<Store | undefined> {
  if (principal === undefined) return undefined
  const [{ storeFile }, { storeWhenUsed }] = await Promise.all([import('../store/file.ts'), import('../store/open.ts')])
  return storeWhenUsed(storeFile(store))
}

async function runOn(
  { kept, store }: { readonly kept: Kept | undefined; readonly store: Store | undefined },
  file: string,
  input: JsonObject | undefined,
  flags: RunFlags,
): Promise<number> {
  const shown = progressOf(flags)
  const host = await openHost({ ...readFlags(flags), ...spokenBy(shown), store })
  try {
    const { flow, graph } = await host.loadFlow(file)
    for (const warning of flow.warnings) process.stderr.write(`${faultText(warning)}\n`)
    if (input !== undefined) graph.plan.boundary?.checkInput(input)
    kept?.announce(shown)
    const cancel = cancelFromOutside()
    const { controller } = cancel
    const printed = printedOf(flags, host, controller)
    const events = host.runtime.stream(graph, input, { ...kept?.options, ...runsFor(flags), signal: controller.signal })
    return await outcomeOf(await follow(events, shown, printed), kept, flags, cancel)
  } finally {
    await host.close()
  }
}

type End = RunEvent & { type: 'run_end' }

interface Followed {
  /** Whether it began; it was refused otherwise. */
  readonly begun: boolean
  readonly end: End | undefined
  /** Whether all that was to be printed on the way was. */
  readonly told: boolean
}

/** Shows each event, and says how it ended. */
async function follow(events: AsyncIterable<RunEvent>, shown: Shown, printed: Printed): Promise<Followed> {
  let begun = false
  let end: End | undefined
  for await (const event of events) {
    if (event.type === 'run_start') begun = true
    if (begun) shown.show(event)
    await printed.show(event)
    if (event.type === 'run_end' && event.path.length === 1) end = event
  }
  shown.end()
  return { begun, end, told: await printed.finish() }
}

async function outcomeOf(
  { begun, end, told }: Followed,
  kept: Kept | undefined,
  flags: RunFlags,
  cancel: Cancel,
): Promise<number> {
  if (end === undefined) return EXIT.failed
  if (kept !== undefined && !begun) return kept.refused(end)
  if (end.status === 'completed' && !printsEvents(flags)) printJson(end.result)
  await kept?.ended(end, flags)
  if (kept === undefined && NEED_THREAD.includes(end.error?.code))
    process.stderr.write('  With --thread the run pauses there, and goes on when it is answered.\n')
  return told ? codeOf(end.status, cancel) : EXIT.failed
}

const NEED_THREAD: readonly unknown[] = ['SUSPEND_NEEDS_THREAD', 'ASK_NEEDS_THREAD']

function codeOf(status: End['status'], { controller: { signal }, code }: Cancel): number {
  if (status === 'completed' || status === 'paused') return EXIT[status]
  return signal.aborted ? code : EXIT.failed
}
