import { createRuntime } from '@sluice/core'
import { EXIT } from '../../exit.ts'
import { escapeControls } from '../../render/escape.ts'
import { storeFile } from '../../store/file.ts'
import { withStore } from '../../store/open.ts'
import type { ForkFlags } from '../threads-options.ts'

/** Prints the name of the new branch. */
export async function forkThread(id: string, { store, branch, at, name }: ForkFlags): Promise<number> {
  const fork = await withStore(storeFile(store), (opened) =>
    createRuntime({ store: opened }).fork(id, { branch, at, name }),
  )
  process.stdout.write(`${escapeControls(fork.branch)}\n`)
  return EXIT.completed
}
