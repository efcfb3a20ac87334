import { SluiceError, type Tool } from '@sluice/core'

export interface PluginTools {
  readonly tools: readonly Tool[]
  readonly shadowing: ReadonlySet<string>
}

/**
 * The tools of plugins beside others, of a folder for example.
 *
 * @throws SluiceError `TOOL_DUPLICATE` when a plugin's tool has the name of another one and its manifest does not say that it
 *   `shadows`.
 */
export function withPluginTools(others: readonly Tool[], { tools, shadowing }: PluginTools): readonly Tool[] {
  for (const { name, source } of tools) {
    const other = others.find((tool) => tool.name === name)
    if (other === undefined || shadowing.has(name)) continue
    throw new SluiceError(
      'TOOL_DUPLICATE',
      `two tools are named "${name}" (${other.source} and ${source}); rename one, or write "shadows": true in the manifest.`,
      { tool: name },
    )
  }
  return [...others.filter(({ name }) => !tools.some((tool) => tool.name === name)), ...tools]
}
