import { AGENTS } from './agents.ts'
import type { Descriptor } from './descriptor.ts'
import { MODELS, OCI_CLIENTS } from './models.ts'
import { EDGES, NODES } from './nodes.ts'
import { TOOLS, TRANSPORTS } from './tools.ts'
import { DATASTORES, TRANSFORMS } from './transforms.ts'

/** Every component type of the Agent Specification 26.4.0 that is not abstract, by name. */
export const COMPONENT_TYPES: ReadonlyMap<string, Descriptor> = new Map(
  [...AGENTS, ...NODES, ...EDGES, ...TOOLS, ...TRANSPORTS, ...TRANSFORMS, ...DATASTORES, ...MODELS, ...OCI_CLIENTS].map(
    (descriptor) => [descriptor.type, descriptor],
  ),
)
