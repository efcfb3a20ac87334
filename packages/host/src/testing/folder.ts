import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, onTestFinished } from 'vitest'

/** A new folder with these files in it, removed after the test. A file whose text begins with `#!` is executable. */
export const folderOf = (files: Readonly<Record<string, string>>): string => makeFolder(files, onTestFinished)

/** The same, removed after all tests of a suite: for its `beforeAll`. */
export const suiteFolderOf = (files: Readonly<Record<string, string>>): string => makeFolder(files, afterAll)

function makeFolder(files: Readonly<Record<string, string>>, after: (remove: () => void) => void): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
  after(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, name), text, { mode: text.startsWith('#!') ? 0o755 : 0o644 })
  }
  return folder
}
