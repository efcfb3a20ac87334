import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { messageOf, own, SluiceError, type Tool } from '@sluice/core'
import { loadManifests, readPlugin } from '../plugins/load.ts'
import type { Plugins } from '../plugins/plugins.ts'
import { isGone, type Owner, parseOwner, thisProcess } from '../store/owner.ts'
import { runProgram } from '../tools/program.ts'
import { CODE_LIMITS, type CodeLimits, checkCode, interpreterIn, type RequestCode, type SubmittedTool } from './code.ts'

/** Code of a request, ready to run for it alone. */
export interface Brought {
  readonly plugins: Plugins
  readonly tools: readonly Tool[]
  /** Ends whatever of it still runs, and removes it from the disk. */
  close(): Promise<void>
}

export interface WorkshopOptions {
  /** Where folders are made; the system's own for such things unless told. */
  readonly folder?: string
  readonly limits?: { readonly [Limit in keyof CodeLimits]?: number | undefined }
  /** The only thing that programs see of the environment. */
  readonly path?: string | undefined
  /** URL of the module that gives plugin programs their global `serve`, where the installed one cannot be found. */
  readonly runtime?: string | undefined
  /** Told what cannot be removed. */
  readonly onWarning?: (message: string) => void
}

const PREFIX = 'sluice-code-'
/** What `rm` tries again while a program that was killed lets go. */
const REMOVE = { recursive: true, force: true, maxRetries: 5, retryDelay: 50 } as const

/** Where code that comes with requests lies while it runs: a folder for each run, in one of this process's own that nobody else may enter. */
export class Workshop {
  readonly limits: CodeLimits
  readonly #place: string
  #home: Promise<string>
  readonly #options: WorkshopOptions

  constructor(place: string, home: string, limits: CodeLimits, options: WorkshopOptions) {
    this.#place = place
    this.#home = Promise.resolve(home)
    this.limits = limits
    this.#options = options
  }

  /**
   * Makes the folder of this process, and removes those of processes that are gone.
   *
   * @throws SluiceError `CODE_FOLDER` where it cannot be made; `LIMIT_INVALID` for a limit that is none.
   */
  static async open(options: WorkshopOptions = {}): Promise<Workshop> {
    const { limits = {}, folder = tmpdir() } = options
    const given = Object.entries(limits).filter(([, most]) => most !== undefined)
    for (const [name, most] of given) {
      if (!Number.isSafeInteger(most) || most < 0)
        throw new SluiceError('LIMIT_INVALID', `${name} of code is ${most}; it is a whole number, 0 or more.`)
    }
    const place = resolve(folder)
    try {
      await sweep(place, options)
      return new Workshop(place, await homeIn(place), { ...CODE_LIMITS, ...Object.fromEntries(given) }, options)
    } catch (cause) {
      const why = `the folder for code of requests cannot be used: ${messageOf(cause)}.`
      throw new SluiceError('CODE_FOLDER', why, { file: place }, cause)
    }
  }

  /** @throws SluiceError `CODE_INVALID` with all that is wrong; then nothing was written. */
  async bring(code: RequestCode): Promise<Brought> {
    checkCode(code, this.limits)
    const folder = await this.#folder()
    try {
      return await this.#laidOut(code, folder)
    } catch (error) {
      await this.#remove(folder)
      throw error
    }
  }

  async close(): Promise<void> {
    await this.#remove(await this.#home)
  }

  /** Whatever tidies up where it lies may have taken the home of a server that is up for long: then there is a new one. */
  async #folder(): Promise<string> {
    const home = this.#home
    const make = async (within: Promise<string>) => mkdtemp(join(await within, 'run-'))
    try {
      return await make(home)
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOENT') throw error
      // One for all who miss it; where there can be none, the next one tries again.
      if (this.#home === home) this.#home = homeIn(this.#place).catch(() => home)
      return make(this.#home)
    }
  }

  async #laidOut({ tools = [], plugins = [], files = [] }: RequestCode, folder: string): Promise<Brought> {
    const lay = (path: string, text: string) => written(join(folder, path), text)
    const cwd = join(folder, 'files')
    await mkdir(cwd, { mode: 0o700 })
    for (const { path, content } of files) await lay(`files/${path}`, content)
    for (const { name, source } of tools) await lay(`tools/${name}`, source)
    for (const { name, manifest, source } of plugins) {
      await lay(`plugins/${name}.json`, JSON.stringify(manifest))
      await lay(`plugins/${name}.mjs`, source)
    }
    const loaded = await this.#load(
      plugins.map(({ name }) => join(folder, 'plugins', `${name}.json`)),
      cwd,
    )
    const work = new Work()
    const env = { PATH: this.#options.path }
    const programs = tools.map((tool) =>
      broughtTool(tool, { command: commandOf(tool, join(folder, 'tools', tool.name)), cwd, env }, work),
    )
    const served = loaded.tools.map((tool) => ({ ...tool, source: tool.source.replace(/^plugin:/, 'request:') }))
    const close = async () => {
      await work.end()
      await loaded.close()
      await this.#remove(folder)
    }
    let closing: Promise<void> | undefined
    return {
      plugins: loaded,
      tools: [...programs, ...served],
      close: () => {
        closing ??= close()
        return closing
      },
    }
  }

  /** What its author does wrong is theirs to see, in the answer; nothing of it goes to the operator's log. */
  async #load(paths: readonly string[], cwd: string): Promise<Plugins> {
    const { runtime } = this.#options
    const options = { env: {}, onWarning: () => {}, ...(runtime === undefined ? {} : { runtime }) }
    try {
      const manifests = await Promise.all(paths.map((path) => readPlugin(path, options)))
      return await loadManifests(
        manifests.map((manifest) => ({ ...manifest, folder: cwd })),
        options,
      )
    } catch (error) {
      const why = messageOf(error).replaceAll(`${dirname(cwd)}/`, '')
      throw new SluiceError('CODE_INVALID', `the code of this request cannot be used: ${why}`, {}, error)
    }
  }

  async #remove(folder: string): Promise<void> {
    await rm(folder, REMOVE).catch((error: unknown) => warn(this.#options, folder, error))
  }
}

/** Calls of programs that have not ended. */
class Work {
  readonly #over = new AbortController()
  readonly #calls = new Set<Promise<unknown>>()

  during<Result>(signal: AbortSignal, start: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const call = start(AbortSignal.any([signal, this.#over.signal]))
    const ended = call.catch(() => {}).finally(() => this.#calls.delete(ended))
    this.#calls.add(ended)
    return call
  }

  async end(): Promise<void> {
    this.#over.abort(new SluiceError('RUN_CANCELLED', 'the run of this code is over.'))
    await Promise.all(this.#calls)
  }
}

function broughtTool({ name }: SubmittedTool, program: Parameters<typeof runProgram>[1], work: Work): Tool {
  return {
    name,
    description: `The program ${name}.`,
    parameters: { type: 'object' },
    source: 'request',
    idempotent: false,
    readArguments: (args) => args,
    readResult: (value) => own(value ?? null, `the result of tool "${name}"`),
    run: (args, { signal }) => work.during(signal, (both) => runProgram(name, program, args, both)),
  }
}

/** The file itself is not executed: one that was just written may still be open in a child that is about to start. */
function commandOf({ source, interpreter }: SubmittedTool, file: string): readonly string[] {
  if (interpreter === undefined) return [...(interpreterIn(source) ?? []), file]
  return [interpreter === 'node' ? process.execPath : interpreter, file]
}

/** A name that nobody can have taken before. */
const homeIn = (place: string): Promise<string> => mkdtemp(join(place, `${PREFIX}${ownerText(thisProcess())}-`))

async function written(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeFile(file, text, { mode: 0o600, flag: 'wx' })
}

const ownerText = (owner: Owner): string => Buffer.from(JSON.stringify(owner)).toString('base64url')

function ownerOf(name: string): Owner | undefined {
  const [, text] = /^sluice-code-([\w-]+)-[A-Za-z0-9]{6}$/.exec(name) ?? []
  const owner: Partial<Owner> | null | undefined = parseOwner(Buffer.from(text ?? '', 'base64url').toString())
  const isOne = Number.isSafeInteger(owner?.pid) && Number(owner?.pid) > 0
  return isOne ? (owner as Owner) : undefined
}

/** Removes what processes left here that were killed. Whoever may still be alive keeps theirs. */
async function sweep(place: string, options: WorkshopOptions): Promise<void> {
  for (const entry of await readdir(place, { withFileTypes: true })) {
    const owner = entry.isDirectory() && entry.name.startsWith(PREFIX) ? ownerOf(entry.name) : undefined
    if (owner === undefined || !isGone(owner)) continue
    const folder = join(place, entry.name)
    const isOurs = await stat(folder)
      .then(({ uid }) => uid === process.getuid?.())
      .catch(() => false)
    if (isOurs) await rm(folder, REMOVE).catch((error: unknown) => warn(options, folder, error))
  }
}

const warnOfProcess = (message: string) => process.emitWarning(message)

function warn({ onWarning = warnOfProcess }: WorkshopOptions, folder: string, error: unknown): void {
  onWarning(`code of a request is left at ${folder}, which cannot be removed: ${messageOf(error)}`)
}
