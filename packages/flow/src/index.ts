export { compileFlow, type FlowGraph } from './compile/compile.ts'
export type { FlowParts, Phase, TransformVerdict } from './compile/parts.ts'
export type { PluginKind, PluginType, PluginTypes } from './components/plugin-types.ts'
export { type Fault, FlowError, showFault } from './faults/fault.ts'
export type {
  AgentNode,
  BranchingNode,
  CheckedNode,
  Component,
  ControlEdge,
  DataEdge,
  EndNode,
  Flow,
  FlowAgent,
  FlowNode,
  FlowTool,
  LlmConfig,
  LlmNode,
  PluginComponent,
  PluginNode,
  Ports,
  StartNode,
  ToolNode,
} from './flow/model.ts'
export { isPluginNode } from './flow/model.ts'
export { type CheckedDocument, type CheckedFlow, type LoadOptions, loadDocument, loadFlow } from './load.ts'
export { type CastOptions, cast } from './schema/cast.ts'
export { castable } from './schema/castable.ts'
export { jsonSchema } from './schema/json-schema.ts'
export type { Property } from './schema/property.ts'
export { placeholders, render } from './schema/template.ts'
export { type PropertyType, showType, typeOfSchema } from './schema/type.ts'
export type { Format } from './text/read.ts'
export { type EnvironmentReference, environmentName } from './tree/environment.ts'
