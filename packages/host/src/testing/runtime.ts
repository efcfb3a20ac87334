import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { buildSync } from 'esbuild'
import { afterAll } from 'vitest'

/** The URL of the plugin runtime, built from its sources for the tests of one file. */
export const builtRuntime = (): string => built('plugin/src/global.ts')

/** The URL of what a plugin program may import. */
export const builtAuthorModule = (): string => built('plugin/src/index.ts')

/** The URL of a module with `loadPlugins`, for a test that runs a host of its own. */
export const builtHost = (): string => built('host/src/plugins/load.ts')

/** The URL of a module with `sqliteStore`, for a process of its own. It finds its driver where the sources do. */
export const builtStore = (): string => built('host/src/store/sqlite.ts')

/** The URL of a module with `fileSink`, for a process of its own. */
export const builtFileSink = (): string => built('host/src/audit/file-sink.ts')

function built(entry: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-built-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const outfile = join(folder, 'built.mjs')
  buildSync({
    entryPoints: [sourceOf(entry)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    alias: {
      '@sluice/core': sourceOf('core/src/index.ts'),
      '@sluice/flow': sourceOf('flow/src/index.ts'),
      '@sluice/plugin/local': sourceOf('plugin/src/local.ts'),
      '@sluice/plugin/wire': sourceOf('plugin/src/wire.ts'),
    },
    external: ['ajv', 'yaml'],
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(sourceOf(entry))) },
  })
  return pathToFileURL(outfile).href
}

const sourceOf = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url))
