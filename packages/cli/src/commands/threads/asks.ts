import { type Ask, type LineSummary, MAIN } from '@sluice/core'
import { EXIT } from '../../exit.ts'
import { escapeControls, printJson } from '../../render/escape.ts'
import { askedBy, questionLines } from '../../render/question.ts'
import { type StoreFile, storeFile } from '../../store/file.ts'
import { asksOf } from '../../store/line.ts'
import { withStore } from '../../store/open.ts'
import { continueCommand, resumeCommand } from '../again.ts'
import type { ListFlags } from '../threads-options.ts'

interface Open {
  readonly line: LineSummary
  readonly ask: Ask
}

/** Every open question, the oldest first. */
export async function listAsks({ store, json }: ListFlags): Promise<number> {
  const file = storeFile(store)
  const lines = await withStore(file, async (opened) => opened.lines())
  const open = lines
    .flatMap((line) => asksOf(line).map((ask) => ({ line, ask })))
    .sort((a, b) => a.ask.askedAt - b.ask.askedAt)
  if (json) printJson(open.map(asJson))
  else for (const one of open) process.stdout.write(`${asLines(one, file, Date.now()).join('\n')}\n`)
  if (!json && open.length === 0) process.stderr.write('no thread waits for an answer\n')
  return EXIT.completed
}

const asJson = ({ line: { thread, branch, graph }, ask }: Open) => ({ thread, branch, graph, ...ask })

/** The flow and its flags are not kept; whoever started the run knows them. */
function asLines({ line, ask }: Open, store: StoreFile, now: number): readonly string[] {
  const { thread, branch, graph } = line
  const where = branch === MAIN ? thread : `${thread} (${branch})`
  const kept = { thread, branch, store }
  const over = ask.expiresAt !== undefined && ask.expiresAt <= now
  const mend = over ? continueCommand(['<flow>'], kept) : resumeCommand(['<flow>'], kept, [ask.key])
  return [
    `${escapeControls(where)}  ${escapeControls(ask.key)}  asked in ${escapeControls(graph)} by ${askedBy(ask, now)}`,
    ...questionLines(ask, now).map((text) => `    ${text}`),
    `    ${mend}`,
  ]
}
