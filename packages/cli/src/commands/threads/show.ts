import { MAIN, type StoredRecord } from '@sluice/core'
import { EXIT } from '../../exit.ts'
import { jsonText, printJson } from '../../render/escape.ts'
import { recordText } from '../../render/record.ts'
import { storeFile } from '../../store/file.ts'
import { withStore } from '../../store/open.ts'
import type { LineFlags } from '../threads-options.ts'

/** A line for each record; what cannot be read says so, for that is when somebody looks. */
export async function showThread(id: string, flags: LineFlags): Promise<number> {
  const records = await recordsOf(id, flags)
  if (flags.json) {
    printJson(records.map(parsed))
    return EXIT.completed
  }
  const width = String(records.at(-1)?.seq ?? 0).length
  for (const record of records) {
    process.stdout.write(`${String(record.seq).padStart(width)}  ${recordText(parsed(record))}\n`)
  }
  return EXIT.completed
}

export async function exportThread(id: string, flags: LineFlags): Promise<number> {
  for (const record of await recordsOf(id, flags)) process.stdout.write(`${jsonText(parsed(record))}\n`)
  return EXIT.completed
}

const recordsOf = (thread: string, { store, branch = MAIN }: LineFlags): Promise<readonly StoredRecord[]> =>
  withStore(storeFile(store), async (opened) => opened.read({ thread, branch }))

/** A record with its number; its text, where that is no JSON any more. */
function parsed({ seq, text }: StoredRecord): object {
  try {
    return { seq, ...JSON.parse(text) }
  } catch {
    return { seq, damaged: text }
  }
}
