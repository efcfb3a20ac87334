import { isObject } from '@sluice/core'
import { NO_PLUGINS, type PluginTypes } from './components/plugin-types.ts'
import type { Fault } from './faults/fault.ts'
import { Report } from './faults/report.ts'
import { Builder } from './flow/builder.ts'
import { checkSettings } from './flow/check-settings.ts'
import { buildFlow } from './flow/flow.ts'
import { deepFreeze } from './flow/freeze.ts'
import type { Flow, FlowAgent } from './flow/model.ts'
import { buildNode } from './flow/nodes.ts'
import { buildAgent } from './flow/parts.ts'
import { checkValue } from './text/limits.ts'
import { type Format, readText } from './text/read.ts'
import { checkChains } from './tree/chains.ts'
import { categoriesOf, type Definition } from './tree/definition.ts'
import type { EnvironmentReference } from './tree/environment.ts'
import { isReference, type Placed, REFERENCED } from './tree/placed.ts'
import { Survey } from './tree/survey.ts'
import { checkVersion } from './tree/version.ts'

export interface LoadOptions {
  /** Named in errors. Its extension tells the format, where `format` does not; without both, text that begins with `{` is JSON. */
  readonly file?: string
  readonly format?: Format
  /** The component types that loaded plugins provide. */
  readonly plugins?: PluginTypes
}

interface Loaded {
  /** `agentspec_version`; without one the document is taken to be of the present version. */
  readonly version: string | undefined
  /** What is odd and loads nevertheless, in the order of the text. */
  readonly warnings: readonly Fault[]
  /** Variables of the environment that the document names as keys, each once. They are read when it runs. */
  readonly environment: readonly EnvironmentReference[]
}

/** A document without faults. Only a flow runs. */
export type CheckedDocument =
  | (Loaded & { readonly kind: 'flow'; readonly flow: Flow })
  | (Loaded & { readonly kind: 'agent'; readonly agent: FlowAgent })
  | (Loaded & { readonly kind: 'component'; readonly type: string })
  /** Nothing but definitions for other documents. */
  | (Loaded & { readonly kind: 'library' })

/** A flow that can run, with what its document says beside it. */
export type CheckedFlow = Flow & Loaded

/**
 * Reads and checks an Agent Specification document of any kind.
 *
 * @throws FlowError with every fault of the document.
 */
export async function loadDocument(text: string, options: LoadOptions = {}): Promise<CheckedDocument> {
  return load(text, options, () => undefined)
}

/**
 * Reads and checks a flow.
 *
 * @throws FlowError with every fault of the document; `FLOW_NOT_A_FLOW` for a document that is sound and no flow.
 */
export async function loadFlow(text: string, options: LoadOptions = {}): Promise<CheckedFlow> {
  const document = await load(text, options, (report, root) => {
    if (root?.type === 'Flow') return
    const found = root === undefined ? 'a library of components' : `a component of type "${root.type}"`
    report.fault(
      'FLOW_NOT_A_FLOW',
      root?.path ?? [],
      `only a Flow runs, and this document is ${found}.\nPut it into a flow; an Agent goes into an AgentNode.`,
    )
  })
  const { version, warnings, environment, flow } = document as Extract<CheckedDocument, { kind: 'flow' }>
  return Object.freeze({ ...flow, version, warnings, environment })
}

type CheckRoot = (report: Report, root: Definition | undefined) => void

async function load(source: string, options: LoadOptions, checkRoot: CheckRoot): Promise<CheckedDocument> {
  const text = source.startsWith('\uFEFF') ? source.slice(1) : source
  const report = new Report()
  const reading = await readText(text, report, options)
  if (reading === undefined || !checkValue(report, reading.value)) {
    report.finish(text, reading?.locate ?? (() => []), options.file)
    throw new Error('a text that cannot be read has a fault')
  }
  const survey = new Survey(report, options.plugins ?? NO_PLUGINS)
  const root = readRoot(survey, reading.value)
  const version = isObject(reading.value) ? checkVersion(report, reading.value) : undefined
  const builder = new Builder(survey)
  if (checkChains(survey)) for (const definition of survey.definitions.values()) build(builder, definition)
  await checkSettings(builder)
  if (root !== 'lost') checkRoot(report, root)
  const warnings = report.finish(text, reading.locate, options.file)
  const loaded = { version, warnings, environment: [...survey.environment.values()] }
  return deepFreeze(kindOf(builder, root === 'lost' ? undefined : root, loaded))
}

/** The component at the top; `undefined` for a library, `lost` when there is a fault instead. */
function readRoot(survey: Survey, value: unknown): Definition | undefined | 'lost' {
  const { report } = survey
  if (!isObject(value)) {
    report.fault('FLOW_ROOT', [], 'the document must be an object with a "component_type", such as a Flow.')
    return 'lost'
  }
  const table = value[REFERENCED]
  const scope = isObject(table) ? { table, path: [REFERENCED], outer: undefined } : undefined
  const placed: Placed = { value, path: [], scope: isReference(value) ? scope : undefined }
  const isLibrary = scope !== undefined && !isReference(value) && value.component_type === undefined
  const root = isLibrary ? undefined : survey.find(placed)
  if (isLibrary || isReference(value)) survey.readTable({ value, path: [], scope })
  survey.run()
  return isLibrary ? undefined : (root ?? 'lost')
}

function build(builder: Builder, definition: Definition): void {
  const categories = categoriesOf(definition)
  if (definition.type === 'Flow') builder.once(definition, buildFlow)
  else if (definition.type === 'Agent') builder.once(definition, buildAgent)
  else if (categories.includes('node')) builder.once(definition, buildNode)
}

function kindOf(builder: Builder, root: Definition | undefined, loaded: Loaded): CheckedDocument {
  if (root === undefined) return { kind: 'library', ...loaded }
  const flow = root.type === 'Flow' ? builder.once(root, buildFlow) : undefined
  if (flow !== undefined) return { kind: 'flow', flow, ...loaded }
  const agent = root.type === 'Agent' ? builder.once(root, buildAgent) : undefined
  if (agent !== undefined) return { kind: 'agent', agent, ...loaded }
  return { kind: 'component', type: root.type, ...loaded }
}
