import { FilesystemSkills, isObject, type SkillsOptions } from '@sluice/core'
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
