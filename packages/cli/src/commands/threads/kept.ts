import type { KeptOfPrincipal } from '@sluice/core'
import { EXIT } from '../../exit.ts'
import { escapeControls, printJson } from '../../render/escape.ts'
import { table } from '../../render/table.ts'
import { storeFile } from '../../store/file.ts'
import { withStore } from '../../store/open.ts'
import type { ListFlags, RemoveKeptFlags } from '../threads-options.ts'

export async function listKept(principal: string | undefined, { store, json }: ListFlags): Promise<number> {
  const kept = [...(await withStore(storeFile(store), async (opened) => opened.kept.list(principal)))].sort(
    (a, b) => compare(a.principal, b.principal) || compare(a.by, b.by),
  )
  if (json) printJson(kept.map(({ text, ...of }) => ({ ...of, value: JSON.parse(text) })))
  else process.stdout.write(table(kept.map(asRow)))
  if (!json && kept.length === 0) process.stderr.write('nothing is kept\n')
  return EXIT.completed
}

export async function removeKept(principal: string, { store, policy }: RemoveKeptFlags): Promise<number> {
  const removed = await withStore(storeFile(store), async (opened) => opened.kept.remove(principal, policy))
  if (removed > 0) return EXIT.completed
  process.stderr.write(`nothing is kept of ${escapeControls(principal)}\n`)
  return EXIT.failed
}

const asRow = ({ principal, by, text }: KeptOfPrincipal) => [principal, by, text].map(escapeControls)
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
