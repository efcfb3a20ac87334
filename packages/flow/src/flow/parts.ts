import { isObject, type JsonObject, own } from '@sluice/core'
import type { Report } from '../faults/report.ts'
import { textProperty } from '../schema/property.ts'
import { placeholders } from '../schema/template.ts'
import { type Definition, fieldOf, itemsOf, textOf, titleOf } from '../tree/definition.ts'
import { type Builder, componentOf } from './builder.ts'
import type { FlowAgent, FlowTool, LlmConfig, PluginComponent } from './model.ts'
import { agree, declaredOf, OPEN, type Side } from './ports.ts'
import { buildPluginComponent, plainValue } from './settings.ts'

export function buildLlm(builder: Builder, definition: Definition): LlmConfig {
  const text = (name: string) => textOf(definition, name)
  const given = (key: string, value: unknown) => (value === undefined ? {} : { [key]: value })
  const retryPolicy = objectOf(builder.report, definition, 'retry_policy')
  if (retryPolicy !== undefined && definition.plugin === undefined) retryIgnored(builder.report, definition)
  return {
    ...componentOf(definition),
    modelId: text('model_id') ?? '',
    ...given('url', text('url')),
    ...given('apiKey', text('api_key')),
    ...given('apiType', text('api_type')),
    parameters: objectOf(builder.report, definition, 'default_generation_parameters') ?? own({}),
    ...given('retryPolicy', retryPolicy),
    tls: {
      ...given('keyFile', text('key_file')),
      ...given('certFile', text('cert_file')),
      ...given('caFile', text('ca_file')),
    },
    ...given('provider', definition.plugin && builder.once(definition, buildPluginComponent)),
  } as LlmConfig
}

/** Whether a call is repeated is decided where everybody can see it: by a policy. */
const retryIgnored = (report: Report, definition: Definition) =>
  report.warn(
    'FLOW_RETRY_POLICY',
    [...definition.path, 'retry_policy'],
    `the retry_policy of ${titleOf(definition)} is not applied: a model is asked once.\nInstall a policy that retries at modelCall.`,
    { onKey: true },
  )

/** An object without the entries that are `null`, which are the same as left out. */
function objectOf(report: Report, definition: Definition, name: string): JsonObject | undefined {
  const value = Object.hasOwn(definition.value, name) ? plainValue(report, definition, name) : undefined
  if (!isObject(value)) return undefined
  return own(Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== null))) as JsonObject
}

export function buildTool(_: Builder, definition: Definition): FlowTool {
  return {
    ...componentOf(definition),
    inputs: declaredOf(definition, 'inputs'),
    outputs: declaredOf(definition, 'outputs'),
    requiresConfirmation: fieldOf(definition, 'requires_confirmation')?.value === true,
  }
}

export function buildAgent(builder: Builder, definition: Definition): FlowAgent {
  const { report } = builder
  const systemPrompt = textOf(definition, 'system_prompt') ?? ''
  const inputs = agree(report, definition, 'inputs', asked(systemPrompt))
  const outputs = answers(agree(report, definition, 'outputs', OPEN))
  const all = <T>(name: string, make: (builder: Builder, definition: Definition) => T) =>
    (itemsOf(definition, name) ?? []).flatMap((item) => builder.once(builder.definitionAt(item), make) ?? [])
  return {
    ...componentOf(definition),
    inputs: inputs.list,
    openInputs: inputs.open,
    outputs: outputs.list,
    openOutputs: outputs.open,
    // Absent only in a document with faults.
    llm: builder.once(builder.held(definition, 'llm_config'), buildLlm) as LlmConfig,
    systemPrompt,
    tools: toolsOf(report, definition, all('tools', buildTool)),
    transforms: all<PluginComponent>('transforms', buildPluginComponent),
    humanInTheLoop: fieldOf(definition, 'human_in_the_loop')?.value !== false,
  }
}

/** A tool that is listed twice is one; two tools of one name could not be told apart by the model. */
function toolsOf(report: Report, definition: Definition, listed: readonly FlowTool[]): readonly FlowTool[] {
  const tools = [...new Set(listed)]
  const twice = tools.find(({ name }, i) => tools.findIndex((other) => other.name === name) < i)
  if (twice !== undefined) {
    report.fault(
      'FLOW_TOOL_NAME',
      [...definition.path, 'tools'],
      `two tools of ${titleOf(definition)} are named "${twice.name}", and a model calls a tool by its name. Remove one.`,
    )
  }
  return tools
}

/** An agent that lists no outputs answers with text, and with whatever that text holds. */
export const answers = (side: Side): Side => (side.list.length === 0 ? OPEN : side)

/** An agent is told of every input, so it may have more than its prompt has places for. */
const asked = (prompt: string): Side => ({ list: placeholders(prompt).map(textProperty), open: true })
