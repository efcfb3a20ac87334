import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteRunLog, sqliteStore } from '@sluice/host'
import { describe, onTestFinished } from 'vitest'
import type { ServerOptions } from '../server.ts'

/** A suite of servers that keep their runs in a file; skipped where there is no SQLite to keep them with. */
export function describeDurable(title: string, suite: () => void): void {
  const missing = whyNoStore()
  if (missing === undefined) describe(title, suite)
  else describe.skip(`${title} (skipped: ${missing})`, suite)
}

function whyNoStore(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-probe-'))
  try {
    sqliteStore(join(folder, 'probe.db')).close()
    return undefined
  } catch (error) {
    return (error as Error).message
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** What a server keeps its threads and runs with in this file; by the clock `now` whoever holds a run may seem to stand still. */
export function keptIn(file: string, now: () => number = Date.now): Pick<ServerOptions, 'store' | 'log'> {
  const store = sqliteStore(file, { synchronous: 'NORMAL' })
  onTestFinished(() => store.close())
  return { store, log: sqliteRunLog(file, { synchronous: 'NORMAL', now }) }
}
