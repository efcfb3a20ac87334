import { SluiceError } from '../errors/error.ts'
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
