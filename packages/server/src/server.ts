import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { SluiceError } from '@sluice/core'
import { createRuntime, type HostRuntimeOptions, memoryRunLog, type RunLog } from '@sluice/host'
import type { Hono } from 'hono'
import { type AppOptions, createApp } from './app.ts'
import { Flows } from './flows/flows.ts'
import type { Env } from './http/env.ts'
import { Runs } from './runs/runs.ts'

export interface ServerOptions extends HostRuntimeOptions, AppOptions {
  /** A folder of flows that requests may name. */
  readonly flows?: string
  /** Where runs, their events and questions are written down; without it, in this process's memory. The server closes it. */
  readonly log?: RunLog
  /** Ended runs that are remembered: 1,000 unless told. */
  readonly keepRuns?: number
  /** What `version` says; for people. */
  readonly version?: string
}

export interface ListenOptions {
  /** 127.0.0.1 unless told. */
  readonly host?: string
  /** 4319 unless told; 0 for one that is free. */
  readonly port?: number
}

/**
 * A server with everything that it needs loaded: policies, plugins, tools and flows are checked, and every plugin has answered,
 * before anything listens.
 *
 * @throws SluiceError for whatever is wrong with a file, a manifest or a setting; `SERVER_PLUGIN` for a plugin that does not start.
 */
export async function createServer(options: ServerOptions = {}): Promise<Server> {
  const { flows: folder, log = memoryRunLog(), keepRuns, version = '0.0.0', ...rest } = options
  const runtime = await createRuntime(rest)
  try {
    await requirePlugins(await runtime.host.check())
    const flows = await Flows.load(runtime, folder)
    const runs = new Runs({ runtime, log, flows, ...(keepRuns === undefined ? {} : { keepRuns }) })
    let draining = false
    const app = createApp({ version, runtime, flows, log, runs, draining: () => draining }, options)
    const close = async () => {
      draining = true
      await runtime.close()
      await runs.settled()
      await log.close()
    }
    return new Server(app, close)
  } catch (error) {
    await runtime.close()
    throw error
  }
}

export class Server {
  /** Answers web requests, without a socket. */
  readonly app: Hono<Env>
  readonly #closeAll: () => Promise<void>
  #listening: ReturnType<typeof serve> | undefined

  constructor(app: Hono<Env>, closeAll: () => Promise<void>) {
    this.app = app
    this.#closeAll = closeAll
  }

  /** @throws SluiceError `SERVER_LISTEN` where the port cannot be had. */
  listen({ host = '127.0.0.1', port = 4319 }: ListenOptions = {}): Promise<{ readonly url: string }> {
    return new Promise((resolve, reject) => {
      const listening = serve(
        { fetch: this.app.fetch, hostname: host, port, overrideGlobalObjects: false },
        (info: AddressInfo) => resolve({ url: `http://${host.includes(':') ? `[${host}]` : host}:${info.port}` }),
      )
      listening.once('error', (cause: Error & { code?: string }) =>
        reject(
          new SluiceError(
            'SERVER_LISTEN',
            `port ${port} of ${host} cannot be had: ${cause.code ?? cause.message}.`,
            {},
            cause,
          ),
        ),
      )
      this.#listening = listening
    })
  }

  /** Takes no more runs, lets those under way come to a point from which they go on, and ends. */
  async close(): Promise<void> {
    await this.#closeAll()
    await new Promise<void>((resolve) => {
      if (this.#listening === undefined) resolve()
      else this.#listening.close(() => resolve())
    })
  }
}

async function requirePlugins(
  checked: readonly { plugin: string; componentType: string; result: string; reason?: string }[],
) {
  const failed = checked.find(({ result }) => result === 'failed')
  if (failed === undefined) return
  const { plugin, componentType, reason } = failed
  throw new SluiceError('SERVER_PLUGIN', `plugin "${plugin}", ${componentType}: ${reason}`, { plugin })
}
