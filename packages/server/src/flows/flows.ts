import { readdir } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { type Runtime, SluiceError } from '@sluice/core'
import type { CheckedFlow, FlowGraph } from '@sluice/flow'
import type { FlowSource, Host, HostRuntime, Workshop } from '@sluice/host'
import { refusedCode } from '../guard/request-code.ts'

/** A flow that runs, as the machine is now. */
export interface Compiled {
  readonly flow: CheckedFlow
  readonly graph: FlowGraph
}

/** A flow that somebody runs, and what they call when they have: code that came with it and plugins of before a reload are gone then. */
export interface Lent extends Compiled {
  /** What it was compiled for and runs on, whatever is loaded meanwhile. */
  readonly runtime: Runtime
  /** Calling it again does nothing more. */
  giveBack(): Promise<void>
}

type Document = Extract<FlowSource, { document: string }>

const EXTENSIONS: ReadonlySet<string> = new Set(['.json', '.yaml', '.yml'])

/** Documents that were handed in and are kept compiled, the last used last. */
const MOST_KEPT = 64

/** The operator's flows, by name, and those that requests bring. Each is compiled once for a runtime, and anew after a reload. */
export class Flows {
  readonly #runtime: HostRuntime
  readonly #files: ReadonlyMap<string, string>
  readonly #workshop: Workshop | undefined
  readonly #compiled = new WeakMap<Runtime, Map<string, Promise<Compiled>>>()

  constructor(runtime: HostRuntime, files: ReadonlyMap<string, string>, workshop?: Workshop) {
    this.#runtime = runtime
    this.#files = files
    this.#workshop = workshop
  }

  /**
   * The flows of a folder: each `.json`, `.yaml` and `.yml` file directly in it, named without its extension. All are compiled.
   *
   * @throws SluiceError `SERVER_FLOWS` for a folder that cannot be read and for two files of one name; FlowError for a flow.
   */
  static async load(runtime: HostRuntime, folder: string | undefined, workshop?: Workshop): Promise<Flows> {
    const flows = new Flows(runtime, folder === undefined ? new Map() : await filesIn(folder), workshop)
    for (const name of flows.names) await flows.named(name)
    return flows
  }

  get names(): readonly string[] {
    return [...this.#files.keys()]
  }

  /** How much code a request may bring; absent where it may bring none. */
  get codeLimits(): Workshop['limits'] | undefined {
    return this.#workshop?.limits
  }

  /** Whether it brings code that this server does not take, though it may have done so when the flow came. */
  refuses(source: FlowSource): boolean {
    return this.#workshop === undefined && 'document' in source && source.code !== undefined
  }

  /**
   * A flow to look at and not to run, for code that came with it is gone.
   *
   * @throws as {@link lend}.
   */
  async compiled(source: FlowSource): Promise<Compiled> {
    const { flow, graph, giveBack } = await this.lend(source)
    await giveBack()
    return { flow, graph }
  }

  /** A flow of the operator's to look at. @throws as {@link lend}. */
  named(name: string): Promise<Compiled> {
    return this.compiled({ name })
  }

  /**
   * A flow to run.
   *
   * @throws SluiceError `FLOW_UNKNOWN`; FlowError with every fault of the document; of code that came with it `REQUEST_CODE`,
   *   `CODE_INVALID`, `CODE_TAKEN`.
   */
  async lend(source: FlowSource): Promise<Lent> {
    const { host, release } = this.#runtime.hold()
    try {
      const { giveBack = async () => {}, ...compiled } = await this.#compiledOn(host, source)
      return { ...compiled, runtime: host.runtime, giveBack: () => giveBack().finally(release) }
    } catch (error) {
      release()
      throw error
    }
  }

  #compiledOn(host: Host, source: FlowSource): Promise<Compiled & Partial<Pick<Lent, 'giveBack'>>> {
    if ('name' in source) return this.#named(host, source.name)
    return source.code === undefined ? this.#handedIn(host, source) : this.#brought(host, source, source.code)
  }

  async #named(host: Host, name: string): Promise<Compiled> {
    const file = this.#files.get(name)
    if (file === undefined) {
      const known = this.names.join(', ') || 'none'
      throw new SluiceError('FLOW_UNKNOWN', `there is no flow "${name.slice(0, 80)}"; flows are: ${known}.`)
    }
    return this.#once(host, `file:${name}`, () => host.loadFlow(file))
  }

  #handedIn(host: Host, { document, format }: Document): Promise<Compiled> {
    return this.#once(host, `text:${format ?? ''}:${document}`, () => host.compile(document, submitted(format)))
  }

  async #brought(host: Host, { document, format }: Document, code: NonNullable<Document['code']>) {
    if (this.#workshop === undefined) throw refusedCode('the code of this flow')
    const brought = await this.#workshop.bring(code)
    try {
      const { flow, graph } = await host.compile(document, { ...submitted(format), brought })
      return { flow, graph, giveBack: brought.close }
    } catch (error) {
      await brought.close()
      throw error
    }
  }

  #once({ runtime }: Host, key: string, compile: () => Promise<Compiled>): Promise<Compiled> {
    const known = this.#compiled.get(runtime) ?? new Map<string, Promise<Compiled>>()
    this.#compiled.set(runtime, known)
    const found = known.get(key) ?? compile()
    known.delete(key)
    known.set(key, found)
    found.catch(() => known.delete(key))
    if (known.size > MOST_KEPT + this.#files.size) {
      const oldest = [...known.keys()].find((each) => each.startsWith('text:'))
      if (oldest !== undefined) known.delete(oldest)
    }
    return found
  }
}

const submitted = (format: Document['format']) => ({ submitted: true, ...(format === undefined ? {} : { format }) })

async function filesIn(folder: string): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>()
  for (const entry of await entriesOf(folder)) {
    const extension = extname(entry)
    if (!EXTENSIONS.has(extension)) continue
    const name = entry.slice(0, -extension.length)
    const file = join(folder, entry)
    const other = files.get(name)
    if (other !== undefined)
      throw new SluiceError('SERVER_FLOWS', `${other} and ${file} are both the flow "${name}". Rename one.`, { file })
    files.set(name, file)
  }
  return files
}

async function entriesOf(folder: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile())
      .map(({ name }) => name)
      .sort()
  } catch (cause) {
    const why = (cause as { code?: string }).code === 'ENOENT' ? 'there is no such folder' : 'it cannot be read'
    throw new SluiceError('SERVER_FLOWS', `the folder of flows ${folder}: ${why}.`, { file: folder }, cause)
  }
}
