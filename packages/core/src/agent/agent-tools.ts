import { SluiceError } from '../errors/error.ts'
import { nearest } from '../errors/nearest.ts'
import type { OwnMiddleware } from '../seams/own.ts'
import type { Tool } from '../tools/tool.ts'

/**
 * An agent's own tools, then those of its middleware, in list order.
 *
 * @throws SluiceError `TOOL_DUPLICATE` for two of one name, with who gave them.
 */
export function agentTools(
  agent: string,
  tools: readonly Tool[],
  middleware: readonly OwnMiddleware[],
): readonly Tool[] {
  const given = [
    ...tools.map((tool) => ({ tool, by: 'its tools' })),
    ...middleware.flatMap((own) =>
      [...(own.tools?.() ?? [])].map((tool) => ({ tool, by: `middleware "${own.name}"` })),
    ),
  ]
  const known = new Map<string, string>()
  for (const { tool, by } of given) {
    const other = known.get(tool.name)
    if (other !== undefined) {
      const from = other === by ? `twice from ${by}` : `from ${other} and from ${by}`
      throw new SluiceError(
        'TOOL_DUPLICATE',
        `agent "${agent}" gets a tool "${tool.name}" ${from}; take one away, or rename it.`,
        { node: agent, tool: tool.name },
      )
    }
    known.set(tool.name, by)
  }
  return given.map(({ tool }) => tool)
}

/**
 * Sees to it that what middleware is about is there: a rule for a tool that is misspelt would hold for none, and nobody would know.
 *
 * @param known the tools whose calls the middleware stands around.
 * @throws SluiceError `AGENT_CONFIG` with the name that is meant.
 */
export function requireTools(agent: string, known: readonly string[], middleware: readonly OwnMiddleware[]): void {
  for (const own of middleware) {
    const { aboutTools = [] } = own
    if (!Array.isArray(aboutTools)) throw new TypeError(`middleware "${own.name}": aboutTools must be a list of names.`)
    const unknown: string | undefined = aboutTools.find((name) => !known.includes(name))
    if (unknown === undefined) continue
    const near = nearest(unknown, known, Math.max(2, unknown.length / 3))
    throw new SluiceError(
      'AGENT_CONFIG',
      `agent "${agent}" has no tool "${unknown}", which middleware "${own.name}" is about;${near === undefined ? '' : ` did you mean "${near}"?`} its tools are: ${known.join(', ') || 'none'}.`,
      { node: agent, tool: unknown },
    )
  }
}

/** Tools of agents inside a tool, where the middleware of whoever calls it stands around theirs too. */
const INSIDE = new WeakMap<Tool, readonly string[]>()

/** Says of a tool which tools are inside it. */
export function holds(tool: Tool, inside: readonly string[]): Tool {
  INSIDE.set(tool, inside)
  return tool
}

/** The names of tools, those inside them included. */
export const namesOf = (tools: readonly Tool[]): readonly string[] =>
  tools.flatMap((tool) => [tool.name, ...(INSIDE.get(tool) ?? [])])
