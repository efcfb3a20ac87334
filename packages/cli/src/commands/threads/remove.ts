import { type LineSummary, MAIN, SluiceError, type Store, unknownLine } from '@sluice/core'
import { EXIT } from '../../exit.ts'
import { printError } from '../../render/error.ts'
import { escapeControls } from '../../render/escape.ts'
import { storeFile } from '../../store/file.ts'
import { withStore } from '../../store/open.ts'
import type { RemoveFlags } from '../threads-options.ts'

/** Removes what it can, prints each, and tells of each that is left. */
export async function removeThreads(ids: readonly string[], { store, olderThan }: RemoveFlags): Promise<number> {
  if (ids.length === 0 && olderThan === undefined)
    throw new SluiceError('CLI_FLAGS', 'nothing says which threads; name them, or give --older-than.')
  return withStore(storeFile(store), async (opened) => {
    const old = olderThan === undefined ? undefined : lastWrittenBefore(await opened.lines(), Date.now() - olderThan)
    let exit: number = EXIT.completed
    for (const id of ids.length === 0 ? (old ?? []) : new Set(ids)) {
      try {
        await remove(opened, id, old)
      } catch (error) {
        exit = printError(error)
      }
    }
    return exit
  })
}

async function remove(store: Store, thread: string, old: ReadonlySet<string> | undefined): Promise<void> {
  if (old !== undefined && !old.has(thread) && (await store.lines(thread)).length > 0) return
  if (!(await store.remove(thread))) throw unknownLine({ thread, branch: MAIN })
  process.stdout.write(`removed ${escapeControls(thread)}\n`)
}

/** Threads of which no branch was written since, and that nobody writes to. */
function lastWrittenBefore(lines: readonly LineSummary[], time: number): ReadonlySet<string> {
  const young = new Set(lines.filter(({ at, busy }) => at >= time || busy).map(({ thread }) => thread))
  return new Set(lines.map(({ thread }) => thread).filter((thread) => !young.has(thread)))
}
