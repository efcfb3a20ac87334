import type { ChatRequest, ChatResponse } from '../../chat/chat.ts'
import type { ChatModel } from '../../chat/model.ts'
import { SluiceError } from '../../errors/error.ts'
import type { NodeContext } from '../../graph/context.ts'
import type { Json, JsonObject } from '../../json/json.ts'
import { own } from '../../json/own.ts'
import type { LogLevel } from '../../seams/site.ts'
import type { Tool } from '../../tools/tool.ts'
import { Task } from '../task.ts'

/** What a plugin that executes a node or a transform may ask of the run, filed under its component type. */
export interface PluginCalls {
  readonly signal: AbortSignal
  emitEvent(name: string, data: Json): void
  log(level: LogLevel, message: string): void
  callModel(request: Omit<ChatRequest, 'model'> & { model?: string }): Promise<ChatResponse>
  runTool(name: string, input: JsonObject): Promise<Json>
}

/**
 * The calls of a plugin's component inside a node. They pass the policies, with `plugin` as the caller of its tools.
 *
 * @param model what its own settings name; without it, it cannot call a model.
 * @param toolOf tools that its run has beside those of the runtime.
 * @throws SluiceError `CONTEXT_FOREIGN` for a `ctx` that is not the one a node was given.
 */
export function pluginCalls(
  ctx: NodeContext,
  componentType: string,
  model?: ChatModel,
  toolOf?: (name: string) => Tool | undefined,
): PluginCalls {
  const task = Task.of(ctx)
  const { scope } = task
  const at = { nodeName: task.nodeName, nodeType: componentType }
  return {
    signal: task.signal,
    emitEvent: (name, data) => {
      const owned = own(data, `the data of event "${name}"`)
      if (scope.sink !== null && !task.over) scope.emit({ type: `plugin:${componentType}:${name}`, ...at, data: owned })
    },
    log: (level, message) => {
      if (scope.sink !== null && !task.over) scope.emit({ type: 'plugin_log', ...at, level, message })
    },
    callModel: (request) => {
      if (model !== undefined) return task.callModel(model, request, { stream: false })
      throw new SluiceError('PLUGIN_CALL', `component "${componentType}" has no model to call: it names no llm_config.`)
    },
    runTool: (name, input) => task.callToolAs('plugin', toolOf?.(name) ?? name, input),
  }
}
