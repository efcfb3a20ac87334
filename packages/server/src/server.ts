import type { Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { MemoryStore, messageOf, SluiceError, type Store } from '@sluice/core'
import {
  createRuntime,
  type HostRuntimeOptions,
  memoryRunLog,
  openLog,
  type RunLog,
  reloadOn,
  Workshop,
} from '@sluice/host'
import type { Hono } from 'hono'
import { type AppOptions, createApp } from './app.ts'
import { Flows } from './flows/flows.ts'
import { byToken } from './guard/authenticate.ts'
import { answerBroken, loopbackOnly, refuseOpen } from './guard/door.ts'
import { Tokens } from './guard/tokens.ts'
import type { Env } from './http/env.ts'
import type { OnFault } from './parts.ts'
import { Runs } from './runs/runs.ts'
import { Slots } from './runs/slots.ts'
import { Metrics } from './telemetry/metrics.ts'
import { Tracing, traced } from './telemetry/tracing.ts'

export interface ServerOptions extends HostRuntimeOptions, AppOptions {
  /**
   * A file of those who may call, with hashes of their tokens, in place of `authenticate`; read anew when `reloadOn` says so, and a
   * fault in it then leaves those who were known before.
   */
  readonly tokens?: string
  /** Runs at once: 16 unless told. Others wait. */
  readonly maxConcurrent?: number
  /** Runs of one caller at once; where callers are known, as many as all unless told. */
  readonly maxConcurrentPerCaller?: number
  /** Runs that wait for others to end: 64 unless told. One more is refused. */
  readonly maxQueue?: number
  /** Until a request has come whole, in milliseconds: 30,000 unless told. What is answered to it may take as long as it does. */
  readonly requestTimeoutMs?: number
  readonly onFault?: OnFault
  /**
   * Whether requests may bring tools, plugins and files for their own run: `false` unless told. They run with the rights of this
   * process, so it is for a server that is confined.
   */
  readonly allowRequestCode?: boolean
  /** Where such code lies while it runs; the system's folder for such things unless told. */
  readonly workDir?: string
  /** Tools that one request may bring: 10 unless told. */
  readonly maxRequestTools?: number
  /** Plugins that one request may bring: 5 unless told. */
  readonly maxRequestPlugins?: number
  /** Files that one request may bring: 20 unless told. */
  readonly maxRequestFiles?: number
  /** Bytes of code that one request may bring: 256 KiB unless told. */
  readonly maxRequestCodeBytes?: number
  /** A folder of flows that requests may name. */
  readonly flows?: string
  /**
   * Where runs, their events and questions are written down; without it, in this process's memory. The server closes it. All servers on
   * one log serve the same flows, with the same tools and policies, for one goes on with runs that another has left.
   */
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
  /**
   * Whether this process is the server's alone: then its global `Request` and `Response` are replaced by ones that cost less, a fifth of
   * the time of a short request. `false` unless told.
   */
  readonly ownsProcess?: boolean
}

/**
 * A server with everything that it needs loaded: policies, plugins, tools and flows are checked, and every plugin has answered,
 * before anything listens.
 *
 * @throws SluiceError for whatever is wrong with a file, a manifest or a setting; `SERVER_PLUGIN` for a plugin that does not start.
 */
export async function createServer(options: ServerOptions = {}): Promise<Server> {
  const { flows: folder, log = memoryRunLog(), keepRuns, version = '0.0.0', requestTimeoutMs, ...rest } = options
  requireThreadsToLast(log, rest.store)
  const { authenticate, stop } = await doorOf(options)
  const tracing = Tracing.start(version)
  const sink = tracing && (await openLog(rest.decisions))
  const decisions = tracing === undefined ? rest.decisions : traced(tracing, sink)
  const runtime = await createRuntime({ ...rest, decisions })
  const closeLog = async () => {
    if (sink !== rest.decisions) await sink?.close?.()
  }
  let workshop: Workshop | undefined
  try {
    await requirePlugins(await runtime.host.check())
    workshop = await workshopOf(options)
    const flows = await Flows.load(runtime, folder, workshop)
    const slots = slotsOf(options, authenticate !== undefined)
    const standing = async () => ({ underWay: runs.underWay, queued: slots.waiting, asks: (await log.asks()).length })
    const metrics = new Metrics(standing)
    const watchers = tracing === undefined ? [metrics] : [metrics, tracing]
    const runs: Runs = new Runs({
      runtime,
      log,
      flows,
      slots,
      watchers,
      ...(keepRuns === undefined ? {} : { keepRuns }),
    })
    const { onFault = () => {} } = options
    const parts = { version, runtime, flows, log, runs, metrics, draining: () => runs.draining, onFault }
    const app = createApp(parts, { ...options, authenticate })
    await runs.start()
    const life: Life = {
      drain: () => {
        runs.drain()
        slots.close()
        stop()
      },
      settle: async () => {
        await runtime.close()
        await runs.settled()
      },
      end: async () => {
        await workshop?.close()
        await log.close()
        await closeLog()
      },
    }
    return new Server(app, life, { isOpen: authenticate === undefined, requestTimeoutMs })
  } catch (error) {
    stop()
    await runtime.close()
    await workshop?.close()
    await log.close()
    await closeLog()
    throw error
  }
}

/** Where code of requests is put, where there may be some. */
async function workshopOf(options: ServerOptions): Promise<Workshop | undefined> {
  const { allowRequestCode = false, workDir, env = process.env, runtime, onWarning } = options
  if (!allowRequestCode) return undefined
  return Workshop.open({
    ...(workDir === undefined ? {} : { folder: workDir }),
    limits: {
      maxTools: options.maxRequestTools,
      maxPlugins: options.maxRequestPlugins,
      maxFiles: options.maxRequestFiles,
      maxBytes: options.maxRequestCodeBytes,
    },
    path: env.PATH,
    runtime,
    ...(onWarning === undefined ? {} : { onWarning }),
  })
}

/** A run whose thread is gone with its process would be begun anew by the next one, and do everything twice. */
function requireThreadsToLast(log: RunLog, store: Store | undefined): void {
  if (!log.durable || (store !== undefined && !(store instanceof MemoryStore))) return
  throw new SluiceError(
    'SERVER_LOG',
    'a log of runs that outlives the process needs a store of threads that does, too.',
  )
}

/** Who is let in, and what ends the watch over the file that says so. */
async function doorOf({ tokens: file, authenticate, reloadOn: causes = [], onWarning }: ServerOptions) {
  if (file === undefined) return { authenticate, stop: () => {} }
  if (authenticate !== undefined)
    throw new SluiceError('SERVER_TOKENS', 'give a file of tokens, or say who calls with "authenticate"; not both.')
  const tokens = await Tokens.load(file)
  const warn = onWarning ?? ((message: string) => process.emitWarning(message))
  const again = () =>
    void tokens.reload().catch((error: unknown) => warn(`${messageOf(error)} Those who were known before still are.`))
  return { authenticate: byToken(tokens), stop: reloadOn(causes, file, again) }
}

function slotsOf(
  { maxConcurrent: max = 16, maxConcurrentPerCaller, maxQueue }: ServerOptions,
  isKnown: boolean,
): Slots {
  const maxPerCaller = maxConcurrentPerCaller ?? (isKnown ? max : undefined)
  return new Slots({
    max,
    ...(maxPerCaller === undefined ? {} : { maxPerCaller }),
    ...(maxQueue === undefined ? {} : { maxQueue }),
  })
}

/** How a server comes to its end. */
interface Life {
  /** No new runs. */
  drain(): void
  /** Settles when those under way have come to a point from which they go on. */
  settle(): Promise<void>
  end(): Promise<void>
}

interface Listening {
  /** Nobody has to say who they are. */
  readonly isOpen: boolean
  readonly requestTimeoutMs: number | undefined
}

export class Server {
  /** Answers web requests, without a socket. */
  readonly app: Hono<Env>
  readonly #life: Life
  readonly #how: Listening
  #listening: ReturnType<typeof serve> | undefined
  #closing: Promise<boolean> | undefined

  constructor(app: Hono<Env>, life: Life, how: Listening) {
    this.app = app
    this.#life = life
    this.#how = how
  }

  /**
   * @throws SluiceError `SERVER_LISTEN` where the port cannot be had; `SERVER_OPEN` for an address that others can reach, on a server
   *   that does not ask who calls.
   */
  async listen({
    host = '127.0.0.1',
    port = 4319,
    ownsProcess = false,
  }: ListenOptions = {}): Promise<{ readonly url: string }> {
    const { isOpen, requestTimeoutMs = 30_000 } = this.#how
    if (isOpen) refuseOpen(host)
    const fetch = isOpen ? loopbackOnly(this.app.fetch) : this.app.fetch
    const serverOptions = {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
    }
    return new Promise((resolve, reject) => {
      const listening = serve(
        { fetch, hostname: host, port, overrideGlobalObjects: ownsProcess, serverOptions },
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
      listening.on('clientError', answerBroken)
      this.#listening = listening
    })
  }

  /**
   * Takes no more runs, and says so at `/readyz`; lets those under way come to a point from which they go on, and ends. Where the log of
   * runs outlives the process, they go on in the next one; else they end as cancelled.
   *
   * @param withinMs how long that may take: 30,000 unless told.
   * @returns false where some did not come to that point in time. They are as good as killed: end the process.
   */
  close({ withinMs = 30_000 }: { readonly withinMs?: number } = {}): Promise<boolean> {
    this.#closing ??= this.#close(withinMs)
    return this.#closing
  }

  async #close(withinMs: number): Promise<boolean> {
    this.#life.drain()
    const over = this.#life.settle().then(() => this.#hangUp())
    const inTime = await within(over, withinMs)
    const listening = this.#listening as HttpServer | undefined
    listening?.closeAllConnections()
    // What is still under way may write to it.
    if (inTime) await this.#life.end()
    return inTime
  }

  /** Settles when every answer is out. */
  #hangUp(): Promise<void> {
    const listening = this.#listening as HttpServer | undefined
    if (listening === undefined) return Promise.resolve()
    const idle = setInterval(() => listening.closeIdleConnections(), HANG_UP_EVERY_MS)
    return new Promise((resolve) =>
      listening.close(() => {
        clearInterval(idle)
        resolve()
      }),
    )
  }
}

/** A connection that is kept alive holds nothing up. */
const HANG_UP_EVERY_MS = 50

async function within(work: Promise<void>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const tooLate = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms)
  })
  try {
    return await Promise.race([work.then(() => true), tooLate])
  } finally {
    clearTimeout(timer)
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
