import { FilesystemMemory, FilesystemSkills, isObject, type MemoryOptions, type SkillsOptions } from '@sluice/core'
import { nodeFiles } from './node-files.ts'

/**
 * Skills in folders of this machine. Their frontmatter may be any YAML.
 *
 * @throws TypeError, RangeError for options that are none.
 */
export function skillsIn(
  folders: string | readonly string[],
  options: Pick<SkillsOptions, 'nodes' | 'name'> = {},
): FilesystemSkills {
  const roots = [folders].flat().map((folder) => nodeFiles(folder))
  return new FilesystemSkills({ ...options, roots, frontmatter: readYaml })
}

/** The parser is loaded here, so that who has no skills does not pay for it. Aliases could make much of little, and nobody needs them. */
async function readYaml(text: string): Promise<unknown> {
  const { default: yaml } = await import('yaml')
  const members: unknown = yaml.parse(text, { schema: 'core', maxAliasCount: 0, logLevel: 'error' })
  return isObject(members) ? members : undefined
}

/**
 * Memory in a folder of this machine, below `memories`. The folder need not be there yet.
 *
 * @throws TypeError for options that are none; SluiceError `PATH_REFUSED` for a scope that is none.
 */
export const memoryIn = (folder: string, options: Omit<MemoryOptions, 'files'>): FilesystemMemory =>
  new FilesystemMemory({ ...options, files: nodeFiles(folder) })
