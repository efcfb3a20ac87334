import { showError } from '@sluice/core'
import { sqliteRunLog, sqliteStore } from '@sluice/host'
import { createServer, type Server } from '@sluice/server'
import { EXIT } from '../exit.ts'
import { readFlags } from './flags.ts'
import type { ServeFlags } from './serve-options.ts'
import { progressOf, spokenBy } from './shown.ts'

/** Serves until the process is asked to end. */
export async function serve(flags: ServeFlags, version: string): Promise<number> {
  const shown = progressOf({})
  const { flows, host, port, store: file = process.env.SLUICE_STORE || undefined, watch } = flags
  const { tokens, rate, maxConcurrent, maxConcurrentPerCaller, maxQueue, corsOrigin: corsOrigins } = flags
  const store = file === undefined ? undefined : sqliteStore(file)
  const ending = signalled()
  let server: Server | undefined
  try {
    server = await createServer({
      ...readFlags(flags),
      ...spokenBy(shown),
      flows,
      allowNet: flags.allowNet,
      allowRequestCode: flags.allowRequestCode,
      workDir: flags.workDir,
      maxRequestTools: flags.maxRequestTools,
      maxRequestPlugins: flags.maxRequestPlugins,
      maxRequestFiles: flags.maxRequestFiles,
      maxRequestCodeBytes: flags.maxRequestCodeBytes,
      store,
      ...(file === undefined ? {} : { log: sqliteRunLog(file) }),
      tokens,
      rate,
      maxConcurrent,
      maxConcurrentPerCaller,
      maxQueue,
      corsOrigins,
      version,
      reloadOn: watch ? ['SIGHUP', 'change'] : ['SIGHUP'],
      onFault: (error, at) => {
        const { name, message } = showError(error)
        shown.line(`! ${at}  ${name}: ${message}`)
      },
    })
    const { url } = await server.listen({ host, port, ownsProcess: true })
    shown.line(`sluice ${version} listens at ${url}`)
    if (file === undefined) shown.line('· threads and runs are kept in memory; --store names a file')
    shown.line(`· ${await ending}; no new runs, and those under way come to a stop`)
    return EXIT.completed
  } finally {
    const inTime = (await server?.close({ withinMs: flags.drainTimeout * 1_000 })) ?? true
    if (inTime) await store?.close()
    else {
      const left = file === undefined ? 'are lost' : 'go on where this store is served next'
      shown.line(`! runs that did not come to a stop in ${flags.drainTimeout} s ${left}`)
      process.exit(EXIT.failed)
    }
  }
}

/** Settles with the first signal to end; the second ends the process at once. */
function signalled(): Promise<string> {
  let signals = 0
  return new Promise((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const)
      process.on(name, () => {
        if (++signals > 1) process.exit(EXIT.failed)
        resolve(name)
      })
  })
}
