import { type LineSummary, MAIN } from '@sluice/core'
import { EXIT } from '../../exit.ts'
import { ago } from '../../render/ago.ts'
import { escapeControls, printJson } from '../../render/escape.ts'
import { table } from '../../render/table.ts'
import { storeFile } from '../../store/file.ts'
import { asksOf, standingOf } from '../../store/line.ts'
import { withStore } from '../../store/open.ts'
import type { ListFlags } from '../threads-options.ts'

export async function listThreads({ store, json }: ListFlags): Promise<number> {
  const lines = await withStore(storeFile(store), async (opened) => opened.lines())
  if (json) printJson(lines.map(asJson))
  else process.stdout.write(table(lines.map((line) => asRow(line, Date.now()))))
  if (!json && lines.length === 0) process.stderr.write('there are no threads\n')
  return EXIT.completed
}

function asJson(line: LineSummary) {
  const { thread, branch, graph, head, at, forkedFrom } = line
  const asks = asksOf(line).length
  return {
    thread,
    branch,
    graph,
    status: standingOf(line),
    asks,
    writtenAt: at,
    head,
    ...(forkedFrom && { forkedFrom }),
  }
}

function asRow(line: LineSummary, now: number): readonly string[] {
  const { thread, branch, graph, at } = line
  const asks = asksOf(line).length
  const waits = asks === 0 ? '' : `, ${asks} ${asks === 1 ? 'question' : 'questions'}`
  const name = branch === MAIN ? thread : `${thread} (${branch})`
  return [escapeControls(name), escapeControls(graph), standingOf(line) + waits, ago(at, now)]
}
