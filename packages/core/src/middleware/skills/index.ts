import type { ChatMessage } from '../../chat/chat.ts'
import { SluiceError } from '../../errors/error.ts'
import { own } from '../../json/own.ts'
import { type Tool, tool } from '../../tools/tool.ts'
import type { ModelMiddlewareContext } from '../contexts.ts'
import { type Files, readPath } from '../files.ts'
import { Middleware } from '../middleware.ts'
import { readBy, readMembers } from '../reading.ts'
import { filesOf, join, readSkills, SkillCatalog } from './catalog.ts'
import type { FrontmatterReader } from './frontmatter.ts'

export { type ReadSkillsOptions, readSkills, type Skill, SkillCatalog } from './catalog.ts'
export type { FrontmatterReader } from './frontmatter.ts'

export type SkillsOptions = {
  /** Nodes whose models are told of the skills; every node without it. */
  readonly nodes?: readonly string[] | ReadonlySet<string>
  /** Names it where there are two; `FilesystemSkills` without it. */
  readonly name?: string
} & (
  | {
      /** Skills that were read with {@link readSkills}. */
      readonly catalog: SkillCatalog
      readonly roots?: undefined
      readonly frontmatter?: undefined
    }
  | {
      /** Where skills are; they are read once, when a model is first told of them. */
      readonly roots: readonly Files[]
      readonly frontmatter?: FrontmatterReader
      readonly catalog?: undefined
    }
)

/** What `load_skill` gives. */
export interface LoadedSkill {
  readonly name: string
  readonly description: string
  readonly content: string
  /** What else is in its folder, for `read_skill_file`; the first 200. */
  readonly files: readonly string[]
}

/**
 * Tells models what skills there are, and lets them read what they need: names and descriptions stand in each request, `load_skill`
 * gives the instructions of one, `read_skill_file` another of its files. Put `tools()` among the agent's.
 *
 * @throws TypeError for options that are none; RangeError for no nodes and for no roots.
 * @see https://agentskills.io, the format of a skill.
 */
export class FilesystemSkills extends Middleware {
  override readonly name: string
  readonly #nodes: ReadonlySet<string> | undefined
  readonly #read: () => Promise<SkillCatalog>
  readonly #tools: readonly Tool[]
  #catalog: Promise<SkillCatalog> | undefined
  #list: ChatMessage | undefined

  constructor(options: SkillsOptions) {
    super()
    requireOptions(options)
    const { catalog, roots = [], frontmatter } = options
    this.name = options.name ?? 'FilesystemSkills'
    this.#nodes = options.nodes === undefined ? undefined : new Set(options.nodes)
    this.#read = () => (catalog === undefined ? readSkills(roots, { frontmatter }) : Promise.resolve(catalog))
    const get = () => this.catalog()
    this.#tools = [loadSkill(get), readSkillFile(get)]
  }

  override tools(): readonly Tool[] {
    return this.#tools
  }

  /** The skills, read when they are first asked for. */
  catalog(): Promise<SkillCatalog> {
    this.#catalog ??= this.#read().catch((error) => {
      this.#catalog = undefined
      throw error
    })
    return this.#catalog
  }

  override async beforeModel(ctx: ModelMiddlewareContext) {
    if (this.#nodes?.has(ctx.nodeName) === false) return undefined
    this.#list ??= listOf(await this.catalog())
    const { messages } = ctx.request
    const at = messages.findIndex(({ role }) => role !== 'system')
    const after = at < 0 ? messages.length : at
    return ctx.replace({ messages: [...messages.slice(0, after), this.#list, ...messages.slice(after)] })
  }
}

const listOf = ({ skills }: SkillCatalog): ChatMessage =>
  own({
    role: 'system',
    content: [
      'Available skills (call load_skill(name) to expand):',
      ...skills.map(({ name, description }) => `- ${name}: ${description}`),
    ].join('\n'),
  }) as unknown as ChatMessage

const text = { type: 'string', minLength: 1 }

const loadSkill = (catalog: () => Promise<SkillCatalog>): Tool =>
  tool('load_skill', {
    description: 'Gives the instructions of a skill, and what other files it has. Call it before you use a skill.',
    input: readBy((value) => readTexts(value, ['name'])),
    parameters: { type: 'object', properties: { name: text }, required: ['name'], additionalProperties: false },
    idempotent: true,
    run: async ({ name }): Promise<LoadedSkill> => {
      const skill = (await catalog()).get(name)
      return { name, description: skill.description, content: skill.content, files: await filesOf(skill) }
    },
  })

const readSkillFile = (catalog: () => Promise<SkillCatalog>): Tool =>
  tool('read_skill_file', {
    description:
      'Gives the text of another file of a skill, by its path in the skill’s folder, as load_skill lists them.',
    input: readBy((value) => readTexts(value, ['name', 'path'])),
    parameters: {
      type: 'object',
      properties: { name: text, path: text },
      required: ['name', 'path'],
      additionalProperties: false,
    },
    idempotent: true,
    run: async ({ name, path }) => {
      const { files, folder } = (await catalog()).get(name)
      const found = await files.read(join(folder, readPath(path)))
      if (found !== undefined) return found
      throw new SluiceError('SKILL_FILE', `skill "${name}" has no file "${path}"; load_skill lists those it has.`, {
        skill: name,
        path,
      })
    },
  })

function readTexts<Name extends string>(value: unknown, names: readonly Name[]): { readonly [N in Name]: string } {
  const members = readMembers(value, names, 'the call')
  for (const name of names) {
    if (typeof members[name] !== 'string' || members[name] === '') throw new TypeError(`"${name}" must be a text`)
  }
  return members as { readonly [N in Name]: string }
}

function requireOptions(options: SkillsOptions): void {
  const what = 'FilesystemSkills'
  const { nodes, roots, catalog } = readMembers(options, ['nodes', 'name', 'roots', 'catalog', 'frontmatter'], what)
  if ((roots === undefined) === (catalog === undefined)) {
    throw new TypeError(`${what}: give either roots, where skills are, or a catalog, which readSkills(…) gives.`)
  }
  if (catalog !== undefined && !(catalog instanceof SkillCatalog)) {
    throw new TypeError(`${what}: catalog must be what readSkills(…) gives; mind its promise.`)
  }
  if (roots !== undefined && !(Array.isArray(roots) && roots.every((root) => typeof root?.read === 'function'))) {
    throw new TypeError(`${what}: roots must be a list of files, such as nodeFiles("skills") of @sluice/host.`)
  }
  if (roots?.length === 0) throw new RangeError(`${what}: roots is empty; give at least one.`)
  if (typeof nodes === 'string') throw new TypeError(`${what}: nodes must be a list of names, not a text.`)
  if (nodes !== undefined && [...(nodes as Iterable<string>)].length === 0) {
    throw new RangeError(`${what}: nodes is empty; name at least one, or leave it out for all.`)
  }
}
