import type { Category } from '../components/descriptor.ts'
import type { PluginType, PluginTypes } from '../components/plugin-types.ts'
import { categoryOf } from '../components/plugin-types.ts'
import { COMPONENT_TYPES } from '../components/types.ts'
import type { Path } from '../faults/path.ts'
import type { Report } from '../faults/report.ts'
import { categoriesOf, type Definition, isComponent } from './definition.ts'
import { wrongType } from './kinds.ts'
import { didYouMean } from './nearest.ts'
import type { Placed } from './placed.ts'
import type { Survey } from './survey.ts'

/** The type of a component and what is known of it. Reports a type that cannot be used; `undefined` for none at all. */
export function typeOf(
  { report, plugins }: Survey,
  { value, path }: Placed,
): Pick<Definition, 'type' | 'descriptor' | 'plugin'> | undefined {
  if (!isComponent(value)) {
    report.fault(
      'FLOW_TYPE_MISSING',
      path,
      `a component is expected here, and this object has no "component_type".${draftHint(value)}`,
    )
    return undefined
  }
  const type = value.component_type
  if (typeof type !== 'string') {
    wrongType(report, [...path, 'component_type'], 'the name of a type', type)
    return undefined
  }
  const descriptor = COMPONENT_TYPES.get(type)
  if (descriptor !== undefined) {
    if (!descriptor.supported) unsupported(report, path, `components of type "${type}" are`)
    return { type, descriptor }
  }
  const plugin = plugins.get(type)
  if (plugin === undefined) unknown(report, path, value, type, plugins)
  else if (categoryOf(plugin.kind) === undefined) notForDocuments(report, path, type, plugin)
  else return { type, plugin }
  return { type }
}

const draftHint = (value: unknown) =>
  Object.hasOwn(value as object, 'type') ? ' Drafts before 25.4.1 wrote "type"; write "component_type".' : ''

/** @param mend what to use instead, where there is something. */
export function unsupported(report: Report, path: Path, what: string, mend = ''): void {
  report.fault('FLOW_TYPE_UNSUPPORTED', path, `${what} not supported yet.${mend && `\n${mend}`}`)
}

function notForDocuments(report: Report, path: Path, type: string, { kind, plugin }: PluginType): void {
  const [article, who] = kind === 'middleware' ? ['a', 'whoever starts the process'] : ['an', 'each request']
  report.fault(
    'FLOW_TYPE_INSTALLED',
    path,
    `"${type}" is ${article} ${kind} of plugin "${plugin}": ${who} chooses it, and a document never names it. Remove it.`,
  )
}

function unknown(
  report: Report,
  path: Path,
  value: Readonly<Record<string, unknown>>,
  type: string,
  plugins: PluginTypes,
): void {
  const { component_plugin_name: plugin, component_plugin_version: version } = value
  const mend =
    typeof plugin === 'string'
      ? `It belongs to plugin "${plugin}"${typeof version === 'string' ? ` ${version}` : ''}; load that with --plugin.`
      : `${didYouMean(type, namable(plugins))}A plugin that provides it is loaded with --plugin.`
  report.fault('FLOW_TYPE_UNKNOWN', path, `unknown component type "${type}".\n${mend}`)
}

/** The types that a document may name. */
function* namable(plugins: PluginTypes): Iterable<string> {
  yield* COMPONENT_TYPES.keys()
  for (const type of plugins.types()) {
    const plugin = plugins.get(type)
    if (plugin !== undefined && categoryOf(plugin.kind) !== undefined) yield type
  }
}

const WORDS: Readonly<Record<Category, string>> = {
  node: 'a node',
  flow: 'a flow',
  agent: 'an Agent',
  agentic: 'an agent or flow',
  controlEdge: 'a ControlFlowEdge',
  dataEdge: 'a DataFlowEdge',
  llm: 'a model configuration',
  tool: 'a tool',
  toolbox: 'a toolbox',
  toolSpec: 'an MCPToolSpec',
  transform: 'a transform',
  transport: 'an MCP transport',
  datastore: 'a datastore',
  connection: 'a database connection',
  ociClient: 'an OCI client configuration',
  geminiAuth: 'a Gemini authentication',
  auth: 'an authentication',
  oauthClient: 'an OAuthClientConfig',
  a2aConnection: 'an A2AConnectionConfig',
  specialization: 'AgentSpecializationParameters',
  component: "a plugin's component",
}

/** Where components of a plugin belong, for who put one elsewhere. */
const HOMES: Partial<Record<Category, string>> = {
  node: 'in the "nodes" of a flow',
  transform: 'in the "transforms" of an Agent',
  llm: 'as "llm_config"',
  component: 'inside another component of its plugin',
}

/** Whether a component may stand where one of `category` is expected. Types that were refused already are left alone. */
export function checkSlot(report: Report, definition: Definition, category: Category, path: Path): boolean {
  const { type, descriptor, plugin } = definition
  if (descriptor === undefined && plugin === undefined) return true
  const own = categoriesOf(definition)
  // A plugin's component may hold anything that a document may name.
  if (own.includes(category) || category === 'component') return true
  const [first] = own
  const what = first === undefined ? 'something else' : WORDS[first]
  const home = plugin === undefined || first === undefined ? undefined : HOMES[first]
  report.fault(
    'FLOW_TYPE_SLOT',
    path,
    `"${type}" is ${what}, and ${WORDS[category]} is expected here.${home === undefined ? '' : `\nIt belongs ${home}.`}`,
  )
  return false
}
