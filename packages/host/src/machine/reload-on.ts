import { watch } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'

/** What makes a host load its policy file anew. */
export type ReloadOn = 'SIGHUP' | 'change'

/** One save is several events; they are over when none has come for so long. */
const QUIET_MS = 100

/** Calls `reload` at each of these; what is handed back stops it. */
export function reloadOn(causes: readonly ReloadOn[], file: string | undefined, reload: () => void): () => void {
  const stops = causes.map((cause) => (cause === 'SIGHUP' ? onSignal(reload) : onChange(file, reload)))
  return () => {
    for (const stop of stops) stop()
  }
}

function onSignal(reload: () => void): () => void {
  process.on('SIGHUP', reload)
  return () => process.off('SIGHUP', reload)
}

/** Editors put another file in its place, so the folder is watched. */
function onChange(file: string | undefined, reload: () => void): () => void {
  if (file === undefined) return () => {}
  let timer: NodeJS.Timeout | undefined
  const watcher = watch(dirname(resolve(file)), { persistent: false }, (_, name) => {
    if (name !== basename(file)) return
    clearTimeout(timer)
    timer = setTimeout(reload, QUIET_MS).unref()
  })
  // The folder may go; what is loaded stays.
  watcher.on('error', () => watcher.close())
  return () => {
    clearTimeout(timer)
    watcher.close()
  }
}
