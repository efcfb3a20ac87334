import {
  createRuntime,
  type HistoryEntry,
  type LineSummary,
  MAIN,
  SluiceError,
  type Store,
  unknownLine,
} from '@sluice/core'
import { type Difference, differencesOf, type Host, type LoadedReplay, openHost } from '@sluice/host'
import { EXIT } from '../../exit.ts'
import { escapeControls, printJson } from '../../render/escape.ts'
import { table } from '../../render/table.ts'
import { storeFile } from '../../store/file.ts'
import { withStore } from '../../store/open.ts'
import { policyFile } from '../policy-file.ts'
import type { ReplayFlags } from '../policy-options.ts'

/** How the policies decide about one thread. */
interface Played {
  readonly thread: string
  readonly compared: number
  readonly differences: readonly Difference[]
  /** Questions at which the play ended, for nobody had answered them. */
  readonly waits?: readonly string[]
}

/** Plays recorded threads past policies, and prints what these decide otherwise than others, or than none. */
export async function replayPolicies(flow: string, flags: ReplayFlags): Promise<number> {
  const { policies, plugin: plugins, pluginConfig, pluginEnv, toolsDir, store, thread, exitCode, json } = flags
  const host = await openHost({ policies: policyFile(policies), plugins, pluginConfig, pluginEnv, toolsDir })
  const other = await openOther(flags).catch(async (failure) => {
    await host.close()
    throw failure
  })
  try {
    const [now, was] = [await host.loadReplay(flow), await other?.loadReplay(flow)]
    const recorded = await withStore(storeFile(store), (opened) => threadsOf(opened, now.graph, thread))
    const played: Played[] = []
    for (const { id, records } of recorded) played.push(await play(id, records, now, was))
    if (json) printJson(played)
    else print(played)
    const differ = played.some(({ differences }) => differences.length > 0)
    return exitCode && differ ? EXIT.failed : EXIT.completed
  } finally {
    await Promise.all([host.close(), other?.close()])
  }
}

/** The other side, if there is one; what only adds to it is refused where there is none. */
async function openOther({ against, toolsDir, ...flags }: ReplayFlags): Promise<Host | undefined> {
  const { againstPlugin: plugins = [], againstPluginConfig: pluginConfig, againstPluginEnv: pluginEnv } = flags
  if (against !== undefined || plugins.length > 0)
    return openHost({ policies: against, plugins, pluginConfig, pluginEnv, toolsDir })
  if (pluginConfig === undefined && pluginEnv === undefined) return undefined
  throw new SluiceError(
    'CLI_FLAGS',
    'there is nothing to compare with; name a file with --against, or a plugin with --against-plugin.',
  )
}

async function threadsOf(store: Store, graph: string, named: readonly string[] | undefined) {
  const runtime = createRuntime({ store })
  const all = (await store.lines()).filter((line) => line.branch === MAIN)
  for (const id of named ?? []) refuseForeign(id, graph, all)
  const ids = named ?? all.flatMap((line) => (line.graph === graph ? line.thread : [])).reverse()
  return Promise.all(ids.map(async (id) => ({ id, records: await runtime.history(id) })))
}

function refuseForeign(thread: string, graph: string, lines: readonly LineSummary[]): void {
  const line = lines.find((each) => each.thread === thread)
  if (line === undefined) throw unknownLine({ thread, branch: MAIN })
  if (line.graph === graph) return
  const message = `thread "${thread}" is one of flow "${line.graph}", not of "${graph}". Name the flow that it was recorded with.`
  throw new SluiceError('THREAD_OF_OTHER_GRAPH', message, { thread, graph })
}

async function play(
  thread: string,
  records: readonly HistoryEntry[],
  now: LoadedReplay,
  was: LoadedReplay | undefined,
): Promise<Played> {
  const { decisions, waits } = await now.play(records)
  const before = await was?.play(records)
  return { thread, ...differencesOf(before?.decisions ?? [], decisions), ...(waits === undefined ? {} : { waits }) }
}

function print(played: readonly Played[]): void {
  const rows = played.flatMap(({ thread, differences }) =>
    differences.map(({ at, subject, call, was, now }) => [
      ...[thread, at, call === 1 ? subject : `${subject} (${call})`],
      `${saidBy(was)} → ${saidBy(now)}`,
      now?.reason ?? was?.reason ?? '',
    ]),
  )
  process.stdout.write(table(rows.map((row) => row.map(escapeControls))))
  for (const { thread, waits = [] } of played) {
    if (waits.length === 0) continue
    const text = `${thread}: played up to ${waits.join(', ')}, which nobody had answered`
    process.stderr.write(`${escapeControls(text)}\n`)
  }
  const compared = played.reduce((sum, each) => sum + each.compared, 0)
  const threads = played.length === 1 ? '1 thread' : `${played.length} threads`
  process.stderr.write(`${threads}, ${rows.length} of ${compared} decisions differ\n`)
}

const saidBy = (decided: Difference['was']): string =>
  decided === undefined ? 'as it was' : `${decided.outcome} by ${decided.by}`
