import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { buildSync } from 'esbuild'
import { afterAll } from 'vitest'

/** The URL of the module that gives plugin programs their global `serve`, built from its sources for the tests of one file. */
export function builtRuntime(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-built-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const outfile = join(folder, 'built.mjs')
  const entry = fileURLToPath(new URL('../../../plugin/src/global.ts', import.meta.url))
  buildSync({ entryPoints: [entry], outfile, bundle: true, platform: 'node', format: 'esm' })
  return pathToFileURL(outfile).href
}
