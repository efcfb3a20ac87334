import type { JsonObject } from '../../json/json.ts'
import { platform } from '../../run/platform.ts'
import { type Tool, type ToolContext, type ToolOptions, tool } from '../../tools/tool.ts'
import type { WritableFiles } from '../files.ts'
import { Middleware } from '../middleware.ts'
import { requireFunction } from '../options.ts'
import { readBy, readMembers } from '../reading.ts'
import { rank } from './bm25.ts'
import { type Memory, MemoryScope } from './scope.ts'

export type { Memory } from './scope.ts'

export interface MemoryOptions {
  /** Where memories are kept: `nodeFiles('folder')` of `@sluice/host`. */
  readonly files: WritableFiles
  /**
   * Whose memories these are: segments joined by `:`, such as `team:support`, or a function of the call's context, such as
   * `({ context }) => 'user:' + context.userId`. A model has no say in it.
   */
  readonly scope: string | ((ctx: ToolContext) => string)
  /** Milliseconds since 1970; the machine's clock without it. */
  readonly time?: () => number
  /** Names it where there are two; `FilesystemMemory` without it. */
  readonly name?: string
}

/** What `search_memory` gives: the best first. */
export interface MemorySearchResult {
  readonly query: string
  readonly results: readonly Memory[]
  /** Files that cannot be read. */
  readonly skipped: readonly string[]
}

/** What `list_memories` gives, by key. */
export interface MemoryListResult {
  readonly scope: string
  readonly entries: readonly Omit<Memory, 'content' | 'scope'>[]
  /** Files that cannot be read. */
  readonly skipped: readonly string[]
}

/** What `delete_memory` gives. */
export interface MemoryDeleteResult {
  readonly key: string
  readonly scope: string
  /** Whether there was one. */
  readonly deleted: boolean
}

/**
 * Lets an agent write down what it should know later, in files: the tools `save_memory`, `search_memory`, `list_memories` and
 * `delete_memory`. Put `tools()` among the agent's. They read and write one scope, which code decides.
 *
 * @throws TypeError for options that are none; SluiceError `PATH_REFUSED` for a scope that is none.
 */
export class FilesystemMemory extends Middleware {
  override readonly name: string
  readonly #files: WritableFiles
  readonly #scope: MemoryOptions['scope']
  readonly #time: () => number
  readonly #tools: readonly Tool[]

  constructor(options: MemoryOptions) {
    super()
    requireOptions(options)
    const { files, scope, time = platform.time, name = 'FilesystemMemory' } = options
    this.name = name
    this.#files = files
    this.#scope = scope
    this.#time = time
    if (typeof scope === 'string') new MemoryScope(files, scope)
    this.#tools = [this.#save(), this.#search(), this.#list(), this.#delete()]
  }

  override tools(): readonly Tool[] {
    return this.#tools
  }

  #open(ctx: ToolContext): { readonly scope: string; readonly store: MemoryScope } {
    const scope = typeof this.#scope === 'string' ? this.#scope : this.#scope(ctx)
    if (typeof scope !== 'string')
      throw new TypeError(`the scope of memory "${this.name}" is a ${typeof scope} and no text`)
    return { scope, store: new MemoryScope(this.#files, scope) }
  }

  #save(): Tool {
    return made('save_memory', {
      description: 'Keeps something for later conversations. What was kept under the same key is replaced.',
      takes: {
        key: { ...TEXT, maxLength: 100, description: 'Names it, for example "preferred-language".' },
        title: { ...TEXT, maxLength: 200 },
        content: { ...TEXT, maxLength: 20_000 },
        memoryType: { ...TEXT, maxLength: 50, default: 'fact', description: 'Such as fact, preference or task.' },
      },
      run: async ({ key, title, content, memoryType }, ctx): Promise<Memory> => {
        const { scope, store } = this.#open(ctx)
        const updatedAt = this.#time()
        const createdAt = (await store.get(key))?.createdAt ?? updatedAt
        const memory: Memory = { key, title, content, memoryType, scope, createdAt, updatedAt }
        await store.put(memory)
        return memory
      },
    })
  }

  #search(): Tool {
    return made('search_memory', {
      description: 'Finds what was kept, by words of its title and content; the best comes first.',
      takes: { query: { ...TEXT, maxLength: 1_000 }, topK: { type: 'integer', minimum: 1, maximum: 100, default: 10 } },
      run: async ({ query, topK }, ctx): Promise<MemorySearchResult> => {
        const { memories, skipped } = await this.#open(ctx).store.all()
        const found = rank(
          query,
          memories.map(({ title, content }) => `${title}\n${content}`),
        )
        return { query, results: found.slice(0, topK).map(({ at }) => memories[at] as Memory), skipped }
      },
    })
  }

  #list(): Tool {
    return made('list_memories', {
      description: 'Gives the keys and titles of all that was kept.',
      takes: {},
      run: async (_args, ctx): Promise<MemoryListResult> => {
        const { scope, store } = this.#open(ctx)
        const { memories, skipped } = await store.all()
        return { scope, entries: memories.map(({ content: _, scope: _scope, ...entry }) => entry), skipped }
      },
    })
  }

  #delete(): Tool {
    return made('delete_memory', {
      description: 'Forgets what was kept under a key.',
      takes: { key: { ...TEXT, maxLength: 100 } },
      run: async ({ key }, ctx): Promise<MemoryDeleteResult> => {
        const { scope, store } = this.#open(ctx)
        return { key, scope, deleted: await store.remove(key) }
      },
    })
  }
}

const TEXT = { type: 'string', minLength: 1 } as const

type Text = {
  readonly type: 'string'
  readonly maxLength: number
  readonly default?: string
  readonly description?: string
}
type Count = { readonly type: 'integer'; readonly minimum: number; readonly maximum: number; readonly default: number }
type Argument = Text | Count
type ValueOf<A> = A extends Count ? number : string

/** A tool of memory. All of them may be repeated: the second time comes to the same. */
function made<const Takes extends Readonly<Record<string, Argument>>>(
  name: string,
  options: {
    readonly description: string
    /** Its arguments as JSON Schema; those without a default are required. */
    readonly takes: Takes
    run(args: { readonly [N in keyof Takes]: ValueOf<Takes[N]> }, ctx: ToolContext): Promise<unknown>
  },
): Tool {
  const { description, takes, run } = options
  const required = Object.keys(takes).filter((argument) => takes[argument]?.default === undefined)
  const input = readBy((value) => readArguments(value, takes))
  const parameters = {
    type: 'object',
    properties: takes,
    required,
    additionalProperties: false,
  } as unknown as JsonObject
  return tool(name, { description, input, parameters, idempotent: true, run } as ToolOptions<typeof input, never>)
}

function readArguments<Takes extends Readonly<Record<string, Argument>>>(value: unknown, takes: Takes) {
  const given = readMembers(value, Object.keys(takes), 'the call')
  const read = ([name, argument]: [string, Argument]) => [name, readArgument(name, argument, given[name])] as const
  return Object.fromEntries(Object.entries(takes).map(read)) as { readonly [N in keyof Takes]: ValueOf<Takes[N]> }
}

function readArgument(name: string, argument: Argument, given: unknown): string | number {
  const value = given ?? argument.default
  if (argument.type === 'integer') {
    const { minimum, maximum } = argument
    if (Number.isInteger(value) && (value as number) >= minimum && (value as number) <= maximum) return value as number
    throw new RangeError(`"${name}" must be a whole number from ${minimum} to ${maximum}`)
  }
  if (typeof value === 'string' && value.trim() !== '' && value.length <= argument.maxLength) return value
  throw new TypeError(`"${name}" must be a text of 1 to ${argument.maxLength} characters`)
}

function requireOptions(options: MemoryOptions): void {
  const what = 'FilesystemMemory'
  const { files, scope, time } = readMembers(options, ['files', 'scope', 'time', 'name'], what)
  if (typeof (files as Partial<WritableFiles> | undefined)?.write !== 'function') {
    throw new TypeError(
      `${what}: files must be files that can be written, such as nodeFiles("folder") of @sluice/host.`,
    )
  }
  if (typeof scope !== 'string' && typeof scope !== 'function') {
    throw new TypeError(`${what}: scope must be a text such as "team:support", or a function of the call's context.`)
  }
  if (time !== undefined) requireFunction(what, 'time', time)
}
