import { readdir } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { type Runtime, SluiceError } from '@sluice/core'
import type { CheckedFlow, FlowGraph } from '@sluice/flow'
import type { FlowSource, HostRuntime, Workshop } from '@sluice/host'
import { refusedCode } from '../guard/request-code.ts'

/** A flow that runs, as the machine is now. */
export interface Compiled {
  readonly flow: CheckedFlow
  readonly graph: FlowGraph
}

/** A flow that somebody runs, and what they call when they have: code that came with it is gone then. */
export interface Lent extends Compiled {
  /** Calling it again does nothing more. */
  giveBack(): Promise<void>
}

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
    if ('name' in source) return this.named(source.name)
    if (source.code === undefined) return this.#handedIn(source)
    const { flow, graph, giveBack } = await this.lend(source)
    await giveBack()
    return { flow, graph }
  }

  /**
   * A flow to run.
   *
   * @throws SluiceError `FLOW_UNKNOWN`; FlowError with every fault of the document; of code that came with it `REQUEST_CODE`,
   *   `CODE_INVALID`, `CODE_TAKEN`.
   */
  async lend(source: FlowSource): Promise<Lent> {
    if ('name' in source || source.code === undefined)
      return { ...(await this.compiled(source)), giveBack: async () => {} }
    const { document, format, code } = source
    if (this.#workshop === undefined) throw refusedCode('the code of this flow')
    const brought = await this.#workshop.bring(code)
    try {
      const options = { submitted: true, brought, ...(format === undefined ? {} : { format }) }
      return { ...(await this.#runtime.compile(document, options)), giveBack: brought.close }
    } catch (error) {
      await brought.close()
      throw error
    }
  }

  async named(name: string): Promise<Compiled> {
    const file = this.#files.get(name)
    if (file === undefined) {
      const known = this.names.join(', ') || 'none'
      throw new SluiceError('FLOW_UNKNOWN', `there is no flow "${name.slice(0, 80)}"; flows are: ${known}.`)
    }
    return this.#once(`file:${name}`, () => this.#runtime.loadFlow(file))
  }

  #handedIn({ document, format }: Extract<FlowSource, { document: string }>): Promise<Compiled> {
    const options = { submitted: true, ...(format === undefined ? {} : { format }) }
    return this.#once(`text:${format ?? ''}:${document}`, () => this.#runtime.compile(document, options))
  }

  #once(key: string, compile: () => Promise<Compiled>): Promise<Compiled> {
    const known = this.#known()
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

  #known(): Map<string, Promise<Compiled>> {
    const { current } = this.#runtime
    const known = this.#compiled.get(current) ?? new Map<string, Promise<Compiled>>()
    this.#compiled.set(current, known)
    return known
  }
}

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
