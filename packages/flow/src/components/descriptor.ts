/** What may stand where a component is expected. */
export type Category =
  | 'node'
  | 'flow'
  | 'agent'
  | 'agentic'
  | 'controlEdge'
  | 'dataEdge'
  | 'llm'
  | 'tool'
  | 'toolbox'
  | 'toolSpec'
  | 'transform'
  | 'transport'
  | 'datastore'
  | 'connection'
  | 'ociClient'
  | 'geminiAuth'
  | 'auth'
  | 'oauthClient'
  | 'a2aConnection'
  | 'specialization'
  /** Only inside a plugin's component. */
  | 'component'

/** What the value of a field must be. Lists of values may hold references, like any value. */
export type FieldKind =
  | { readonly is: 'string' | 'template' | 'boolean' | 'number' | 'integer' | 'object' | 'any' }
  | { readonly is: 'strings' | 'stringMap' | 'properties' | 'generation' }
  | { readonly is: 'oneOf'; readonly values: readonly unknown[] }
  | { readonly is: 'component' | 'components'; readonly category: Category }
  /** A node that is named here and belongs to the flow's `nodes`. */
  | { readonly is: 'nodeRef' }
  /** Lists of two components. */
  | { readonly is: 'pairs'; readonly category: Category }

export interface Field {
  readonly kind: FieldKind
  /** A field that is not required may be `null`, which is the same as leaving it out. */
  readonly required: boolean
  readonly default?: unknown
}

/** One component type of the Agent Specification, as data. */
export interface Descriptor {
  readonly type: string
  readonly categories: readonly Category[]
  /** Whether this release can run it. The others are known by name and refused. */
  readonly supported: boolean
  readonly fields: ReadonlyMap<string, Field>
}

export const text = { is: 'string' } as const
/** Text with `{{placeholders}}`. */
export const template = { is: 'template' } as const
export const flag = { is: 'boolean' } as const
export const decimal = { is: 'number' } as const
export const whole = { is: 'integer' } as const
export const object = { is: 'object' } as const
export const anything = { is: 'any' } as const
export const texts = { is: 'strings' } as const
export const textMap = { is: 'stringMap' } as const
const properties = { is: 'properties' } as const
export const generation = { is: 'generation' } as const
export const nodeRef = { is: 'nodeRef' } as const
export const oneOf = (...values: readonly unknown[]) => ({ is: 'oneOf', values }) as const
export const one = (category: Category) => ({ is: 'component', category }) as const
export const many = (category: Category) => ({ is: 'components', category }) as const
export const pairs = (category: Category) => ({ is: 'pairs', category }) as const

export const required = (kind: FieldKind): Field => ({ kind, required: true })
export const optional = (kind: FieldKind, byDefault: unknown = null): Field => ({
  kind,
  required: false,
  default: byDefault,
})

/** What every component has. */
export const COMMON: Readonly<Record<string, Field>> = {
  id: optional(text),
  name: required(text),
  description: optional(text),
  metadata: optional(object),
}
export const IO: Readonly<Record<string, Field>> = { inputs: optional(properties), outputs: optional(properties) }
export const NODE: Readonly<Record<string, Field>> = { ...IO, branches: optional(texts) }

type Make = (type: string, fields: Readonly<Record<string, Field>>) => Descriptor

const make =
  (supported: boolean, categories: readonly Category[], base: Readonly<Record<string, Field>>): Make =>
  (type, fields) => ({
    type,
    categories,
    supported,
    fields: new Map(Object.entries({ ...COMMON, ...base, ...fields })),
  })

/** Makers for types that this release runs. */
export const runs = (categories: readonly Category[], base: Readonly<Record<string, Field>> = {}) =>
  make(true, categories, base)
/** Makers for types that are known and refused. */
export const refused = (categories: readonly Category[], base: Readonly<Record<string, Field>> = {}) =>
  make(false, categories, base)
