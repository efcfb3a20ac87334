import { type JsonObject, own } from '@sluice/core'
import { showPath } from '../faults/path.ts'
import { type Property, propertyOf, textProperty } from '../schema/property.ts'
import { placeholders } from '../schema/template.ts'
import { type Definition, fieldOf, textOf, titleOf } from '../tree/definition.ts'
import { entriesOf } from '../tree/placed.ts'
import { unsupported } from '../tree/types.ts'
import { type Builder, componentOf } from './builder.ts'
import { buildFlow } from './flow.ts'
import type { CheckedNode, Ports } from './model.ts'
import { answers, buildAgent, buildLlm, buildTool } from './parts.ts'
import { agree, closed, declaredOf, mirrored, OPEN, type Side, sideOf } from './ports.ts'
import { buildPluginComponent } from './settings.ts'

const NEXT = ['next']

/** What the specification calls the input of a branching node that declares none. */
const BRANCHING_INPUT = 'branching_mapping_key'
/** A key of `mapping` that stands for every other input. Documents of other runtimes use it; the specification has no such key. */
const DEFAULT_KEY = 'DEFAULT_BRANCH'

/** What sets the kinds of nodes apart. */
interface Specifics {
  readonly inputs: Side
  readonly outputs: Side
  readonly branches: readonly string[] | undefined
  readonly [part: string]: unknown
}

export function buildNode(builder: Builder, definition: Definition): CheckedNode {
  const { inputs, outputs, ...rest } = specificsOf(builder, definition)
  const ports: Ports = {
    inputs: inputs.list,
    openInputs: inputs.open,
    outputs: outputs.list,
    openOutputs: outputs.open,
  }
  // Complete for its type, except in a document with faults, which is never handed out.
  return {
    ...componentOf(definition),
    path: showPath(definition.path),
    ...ports,
    ...rest,
  } as unknown as CheckedNode
}

function specificsOf(builder: Builder, definition: Definition): Specifics {
  const { report } = builder
  const sides = (inputs: Side, outputs: Side) => ({
    inputs: agree(report, definition, 'inputs', inputs),
    outputs: agree(report, definition, 'outputs', outputs),
  })
  switch (definition.type) {
    case 'StartNode': {
      const side = mirrored(report, definition)
      return { inputs: side, outputs: side, branches: NEXT }
    }
    case 'EndNode': {
      const side = mirrored(report, definition)
      return { inputs: side, outputs: side, branches: [], branchName: textOf(definition, 'branch_name') ?? 'next' }
    }
    case 'LlmNode': {
      const prompt = textOf(definition, 'prompt_template') ?? ''
      const declared = declaredOf(definition, 'outputs') ?? []
      return {
        inputs: agree(report, definition, 'inputs', closed(placeholders(prompt).map(textProperty))),
        outputs: closed(declared.length > 0 ? declared : [textProperty('generated_text')]),
        branches: NEXT,
        llm: builder.once(builder.held(definition, 'llm_config'), buildLlm),
        prompt,
      }
    }
    case 'AgentNode': {
      const held = builder.held(definition, 'agent')
      if (held?.type === 'Flow') {
        unsupported(report, [...definition.path, 'agent'], 'a Flow in an AgentNode is', 'Use a FlowNode.')
      }
      const agent = builder.once(held?.type === 'Agent' ? held : undefined, buildAgent)
      const { inputs, outputs } = sides(...sidesOf(agent))
      return { inputs, outputs: answers(outputs), branches: NEXT, agent }
    }
    case 'ToolNode': {
      const tool = builder.once(builder.held(definition, 'tool'), buildTool)
      return { ...sides(sideOf(tool?.inputs), sideOf(tool?.outputs)), branches: NEXT, tool }
    }
    case 'FlowNode': {
      const flow = builder.once(builder.held(definition, 'subflow'), buildFlow)
      return { ...sides(...sidesOf(flow)), branches: flow?.exits, flow }
    }
    case 'BranchingNode':
      return branching(builder, definition)
    default:
      return ofPlugin(builder, definition)
  }
}

const sidesOf = (ports: Ports | undefined): [Side, Side] =>
  ports === undefined
    ? [OPEN, OPEN]
    : [
        { list: ports.inputs, open: ports.openInputs },
        { list: ports.outputs, open: ports.openOutputs },
      ]

function branching({ report }: Builder, definition: Definition): Specifics {
  const inputs = declaredOf(definition, 'inputs') ?? [textProperty(BRANCHING_INPUT)]
  if (inputs.length !== 1) {
    report.fault(
      'FLOW_BRANCHING_INPUT',
      [...definition.path, 'inputs'],
      `${titleOf(definition)} decides by exactly one input; ${inputs.length} are declared.`,
    )
  }
  const written = fieldOf(definition, 'mapping')
  const mapping = new Map(Object.entries((written && entriesOf(written)) ?? {}).filter(isText))
  const fallback = mapping.get(DEFAULT_KEY) ?? 'default'
  if (mapping.delete(DEFAULT_KEY)) {
    report.warn(
      'FLOW_BRANCH_DEFAULT_KEY',
      [...(written?.path ?? definition.path), DEFAULT_KEY],
      `"${DEFAULT_KEY}" is read as every other input, which is not in the specification. Draw an edge for branch "default" instead.`,
    )
  }
  return {
    inputs: closed(inputs),
    outputs: agree(report, definition, 'outputs', closed([])),
    branches: [...new Set([...mapping.values(), fallback])],
    mapping,
    fallback,
  }
}

const isText = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string'

function ofPlugin(builder: Builder, definition: Definition): Specifics {
  const { plugin } = definition
  // A type that was refused: whatever it does, the edges to and from it are not to blame.
  if (plugin === undefined) return { inputs: OPEN, outputs: OPEN, branches: undefined }
  const side = (direction: 'inputs' | 'outputs') =>
    sideOf(declaredOf(definition, direction) ?? manifested(plugin[direction]))
  const written = fieldOf(definition, 'branches')?.value
  const branches = plugin.branches ?? (Array.isArray(written) ? written.filter((name) => typeof name === 'string') : [])
  return {
    inputs: side('inputs'),
    outputs: side('outputs'),
    branches: branches.length === 0 ? undefined : branches,
    component: builder.once(definition, buildPluginComponent),
  }
}

const manifested = (list: readonly JsonObject[] | undefined): readonly Property[] | undefined =>
  list?.map((schema) => propertyOf(own(schema) as JsonObject))
