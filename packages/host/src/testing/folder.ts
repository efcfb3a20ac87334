import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A new folder with these files in it, removed after the test. A file whose text begins with `#!` is executable. */
export function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), text, { mode: text.startsWith('#!') ? 0o755 : 0o644 })
  }
  return folder
}
