import { SluiceError } from '../../errors/error.ts'
import type { Files } from '../files.ts'
import { type FrontmatterReader, readFlat, readSkillText } from './frontmatter.ts'

/** A skill as it was read. */
export interface Skill {
  readonly name: string
  readonly description: string
  /** Its instructions: what stands in `SKILL.md` after the frontmatter. */
  readonly content: string
  /** Where its folder is, and under which root. */
  readonly folder: string
  readonly files: Files
}

export interface ReadSkillsOptions {
  /** Reads the frontmatter; without it, lines `key: value`, which is a part of YAML. */
  readonly frontmatter?: FrontmatterReader
}

/** Skills by name, as they were when they were read. */
export class SkillCatalog {
  readonly #skills: ReadonlyMap<string, Skill>

  /** @throws SluiceError `SKILL_CONFLICT` for two of one name. */
  constructor(skills: readonly Skill[]) {
    const known = new Map<string, Skill>()
    for (const skill of skills) {
      const other = known.get(skill.name)
      if (other !== undefined && pathOf(other) !== pathOf(skill)) throw conflict(other, skill)
      known.set(skill.name, skill)
    }
    this.#skills = known
  }

  /** In the order they were found. */
  get skills(): readonly Skill[] {
    return [...this.#skills.values()]
  }

  /** @throws SluiceError `SKILL_UNKNOWN` listing those there are. */
  get(name: string): Skill {
    const skill = this.#skills.get(name)
    if (skill !== undefined) return skill
    throw new SluiceError(
      'SKILL_UNKNOWN',
      `there is no skill "${name}"; skills are: ${[...this.#skills.keys()].join(', ')}.`,
      { skill: name },
    )
  }
}

/** The file of a skill, by which it is known again. */
const pathOf = ({ files, folder }: Skill): string => `${files.root}/${join(folder, SKILL_FILE)}`

const conflict = (one: Skill, other: Skill) =>
  new SluiceError(
    'SKILL_CONFLICT',
    `two skills are named "${one.name}": ${pathOf(one)} and ${pathOf(other)}; rename one.`,
    { skill: one.name },
  )

const SKILL_FILE = 'SKILL.md'

/** Folders of a tree that are looked into, and how deep; a root that was given by mistake is noticed. */
const MAX_FOLDERS = 2_000
const MAX_DEPTH = 8

/**
 * Reads the skills under some roots: each folder with a `SKILL.md` is one, and what else is in it belongs to it. Folders that
 * begin with `.`, and `node_modules`, are passed by.
 *
 * @throws SluiceError `SKILL_FORMAT`, `SKILL_CONFLICT`; `SKILLS_MISSING` for a root without any.
 */
export async function readSkills(roots: readonly Files[], { frontmatter = readFlat }: ReadSkillsOptions = {}) {
  const skills: Skill[] = []
  for (const files of roots) {
    const before = skills.length
    for await (const { folder, entries } of foldersOf(files, '')) {
      if (!entries.includes(SKILL_FILE)) continue
      skills.push(await readSkill(files, folder, frontmatter))
    }
    if (skills.length > before) continue
    throw new SluiceError('SKILLS_MISSING', `there is no ${SKILL_FILE} in ${files.root}, nor in a folder below it.`, {
      file: files.root,
    })
  }
  return new SkillCatalog(skills)
}

async function readSkill(files: Files, folder: string, frontmatter: FrontmatterReader): Promise<Skill> {
  const path = join(folder, SKILL_FILE)
  const named = `${files.root}/${path}`
  try {
    const text = (await files.read(path)) ?? ''
    return Object.freeze({ ...(await readSkillText(text, named, frontmatter)), folder, files })
  } catch (error) {
    if (error instanceof SluiceError && error.code === 'SKILL_FORMAT') throw error
    const why = (error as Error).message.replace(/\.$/, '')
    throw new SluiceError('SKILL_FORMAT', `${named} cannot be read: ${why}.`, { file: named }, error)
  }
}

/** The folders of a tree with the names of their files; what is below a skill is not another one. */
async function* foldersOf(files: Files, root: string): AsyncGenerator<{ folder: string; entries: readonly string[] }> {
  const open = [{ folder: root, depth: 0 }]
  for (let seen = 1; open.length > 0; seen++) {
    const { folder, depth } = open.shift() as { folder: string; depth: number }
    if (seen > MAX_FOLDERS) throw tooLarge(files, `has more than ${MAX_FOLDERS} folders`)
    if (depth > MAX_DEPTH) throw tooLarge(files, `is deeper than ${MAX_DEPTH} folders`)
    const listed = await files.list(folder)
    const entries = listed.flatMap(({ name, kind }) => (kind === 'file' ? [name] : []))
    yield { folder, entries }
    if (entries.includes(SKILL_FILE)) continue
    for (const { name, kind } of listed) {
      if (kind === 'folder' && isLookedInto(name)) open.push({ folder: join(folder, name), depth: depth + 1 })
    }
  }
}

const isLookedInto = (folder: string): boolean => !folder.startsWith('.') && folder !== 'node_modules'

const tooLarge = (files: Files, why: string) =>
  new SluiceError('SKILLS_MISSING', `${files.root} ${why}; give a folder that holds skills and little else.`, {
    file: files.root,
  })

/** Files of a skill that are listed to a model. */
const MAX_LISTED = 200

/** The files of a skill beside its `SKILL.md`, relative to its folder, sorted. */
export async function filesOf({ files, folder }: Skill): Promise<readonly string[]> {
  const found: string[] = []
  const open = ['']
  for (let inside = open.shift(); inside !== undefined && found.length < MAX_LISTED; inside = open.shift()) {
    for (const { name, kind } of await files.list(join(folder, inside))) {
      const path = join(inside, name)
      if (kind === 'folder' && isLookedInto(name)) open.push(path)
      else if (kind === 'file' && path !== SKILL_FILE) found.push(path)
    }
  }
  return found.slice(0, MAX_LISTED).toSorted()
}

export const join = (folder: string, name: string): string =>
  folder === '' || name === '' ? folder + name : `${folder}/${name}`
