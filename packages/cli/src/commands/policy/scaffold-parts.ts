import type { Scaffold } from './scaffold.ts'

/** The verdict that lets a step be, and the one that does not; the seam `ask` has none. */
export const wordsOf = ({ half, admits }: Scaffold) => ({
  yes: half === 'before' ? 'proceed' : 'pass',
  no: admits.find((action) => action === 'reject') ?? admits.find((action) => action === 'fail'),
})

/** The member of a subject that names the step. */
export const namedBy = (seam: string): string =>
  seam === 'toolCall' ? 'toolName' : seam === 'run' ? 'graphName' : seam === 'ask' ? 'key' : 'nodeName'

export function manifestOf({ name, type, seam, half }: Scaffold, command?: readonly string[]): string {
  const schema = {
    type: 'object',
    properties: { refuse: { type: 'array', items: { type: 'string' } } },
    additionalProperties: false,
  }
  const component = { componentType: type, kind: 'middleware', seams: { [seam]: [half] }, schema }
  const manifest = { name, version: '0.1.0', ...(command && { command }), capabilities: [], components: [component] }
  return `${JSON.stringify(manifest, null, 2)}\n`
}
