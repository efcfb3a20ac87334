import { isObject, type JsonObject, own, type Tool } from '@sluice/core'
import type { ManifestTool } from '../manifest/manifest.ts'
import type { Fits } from '../manifest/schema.ts'
import { callPlugin } from './direct.ts'
import { type ComponentSite, noAnswer } from './node.ts'

export interface PluginToolOptions {
  readonly declared: ManifestTool
  readonly fitsInput: Fits | undefined
  readonly fitsOutput: Fits | undefined
  /** Milliseconds one call may take. */
  readonly timeoutMs?: number
  /** What the tool has to tell people. */
  say(text: string): void
}

/** What every tool that a manifest declares has, whoever runs it. */
export function declaredTool(
  plugin: string,
  { declared, fitsInput, fitsOutput }: PluginToolOptions,
): Omit<Tool, 'run'> {
  const { name, description = `Tool "${name}" of plugin "${plugin}".`, inputSchema } = declared
  return {
    name,
    description,
    parameters: inputSchema ?? { type: 'object' },
    source: `plugin:${plugin}`,
    idempotent: false,
    readArguments: (value) =>
      fitsInput === undefined ? value : (fitsInput(value, `the arguments of tool "${name}"`) as JsonObject),
    readResult: (value) => {
      const what = `the result of tool "${name}"`
      const result = own(value ?? null, what)
      return fitsOutput === undefined ? result : fitsOutput(result, what)
    },
  }
}

/** A tool that a plugin serves; one that was discovered may belong to none of its types. */
export function remoteTool(
  { componentType, ...site }: Omit<ComponentSite, 'componentType'> & { readonly componentType: string | undefined },
  options: PluginToolOptions,
): Tool {
  const { name } = options.declared
  return {
    ...declaredTool(site.plugin, options),
    async run(input, { signal }) {
      const params = { tool: name, input, componentType }
      const answer = await callPlugin({ ...site, method: 'callTool', params, ctx: { signal } })
      if (!isObject(answer) || !('output' in answer)) throw noAnswer(site.plugin, `tool "${name}"`, '{ output }')
      if (typeof answer.stderr === 'string') options.say(answer.stderr)
      return answer.output
    },
  }
}
