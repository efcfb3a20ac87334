import { checkSubscriptions, isObject } from '@sluice/core'
import { BUILTIN_TYPES } from './builtin-types.ts'
import { type Faults, IDENTIFIER, received } from './faults.ts'
import type { Kind, ManifestComponent } from './manifest.ts'

/** The fields that belong to one kind. */
const FIELDS: { readonly [K in Kind]: readonly string[] } = {
  node: ['inputs', 'outputs', 'branches'],
  transform: ['phase'],
  provider: ['stream'],
  component: [],
  middleware: ['seams', 'stream', 'kept'],
  encoder: ['protocol', 'contentType'],
}
/** Why `files` is refused, at a component as at the top. */
export const NO_FILES =
  'are not supported: nothing is copied into a working folder; have the plugin or its tools read them from its own folder'
const SHARED = ['componentType', 'kind', 'schema', 'description']
const KEPT_SCOPES = ['turn', 'thread', 'principal'] as const
const KINDS = Object.keys(FIELDS) as readonly Kind[]

/** A protocol's name stands in a flag and in an address. */
const PROTOCOL_NAME = /^[a-z0-9][a-z0-9-]*$/
/** What the host renders by itself. */
export const OWN_PROTOCOL = 'sluice'

/** Reads one entry of `components`; what is wrong goes to `faults`. */
export function readComponent(value: unknown, at: string, faults: Faults): ManifestComponent | undefined {
  const declared = faults.object(value ?? null, at)
  if (declared === undefined) return undefined
  const kind = readKind(declared.kind, `${at}.kind`, faults)
  const componentType = readType(declared.componentType, `${at}.componentType`, faults)
  if (kind === undefined) return undefined
  refuseFields(declared, kind, at, faults)
  faults.known(declared, [...SHARED, ...FIELDS[kind]], at)
  const shared = { componentType, kind, schema: faults.object(declared.schema, `${at}.schema`) }
  switch (kind) {
    case 'node':
      return {
        ...shared,
        inputs: readProperties(declared.inputs, `${at}.inputs`, faults),
        outputs: readProperties(declared.outputs, `${at}.outputs`, faults),
        branches: faults.texts(declared.branches, `${at}.branches`),
      }
    case 'transform':
      return { ...shared, phase: faults.oneOf(declared.phase, ['pre', 'post', 'both'], `${at}.phase`) ?? 'pre' }
    case 'provider':
      return { ...shared, stream: faults.flag(declared.stream, `${at}.stream`) ?? false }
    case 'component':
      return shared
    case 'middleware': {
      const stream = faults.oneOf(declared.stream, ['hold', 'pass'], `${at}.stream`)
      const kept = readKept(declared.kept, `${at}.kept`, faults)
      return { ...shared, stream, kept, seams: readSeams(declared.seams, `${at}.seams`, componentType, faults) }
    }
    case 'encoder': {
      const contentType = faults.text(declared.contentType, `${at}.contentType`)
      return { ...shared, protocol: readProtocol(declared.protocol, `${at}.protocol`, faults), contentType }
    }
  }
}

function readKind(kind: unknown, at: string, faults: Faults): Kind | undefined {
  if (kind === 'store') {
    faults.add(at, `is "store"; threads are kept by the host's own store. Kinds are: ${KINDS.join(', ')}`)
    return undefined
  }
  return kind === undefined ? 'node' : faults.oneOf(kind, KINDS, at)
}

function readType(type: unknown, at: string, faults: Faults): string {
  const name = faults.text(type, at)
  if (name === '') return name
  if (!IDENTIFIER.test(name)) faults.add(at, `is ${received(name)}; a component type matches ${IDENTIFIER.source}`)
  else if (name in Object.prototype)
    faults.add(at, `is "${name}", a name that every JavaScript object has; take another`)
  else if (BUILTIN_TYPES.has(name)) faults.add(at, `is "${name}", a builtin type of Agent Spec; take another name`)
  return name
}

function refuseFields(declared: object, kind: Kind, at: string, faults: Faults): void {
  if (Object.hasOwn(declared, 'files')) faults.add(`${at}.files`, NO_FILES)
  for (const field of new Set(Object.values(FIELDS).flat())) {
    if (!Object.hasOwn(declared, field) || FIELDS[kind].includes(field)) continue
    const owners = KINDS.filter((other) => FIELDS[other].includes(field))
    const article = kind === 'encoder' ? 'an' : 'a'
    faults.add(`${at}.${field}`, `does not belong to ${article} ${kind}; it belongs to: ${owners.join(', ')}`)
  }
}

function readProperties(value: unknown, at: string, faults: Faults): ManifestComponent['inputs'] {
  const properties = faults.objects(value, at)
  properties?.forEach((property, i) => {
    faults.text(property.title, `${at}[${i}].title`)
  })
  return properties
}

function readProtocol(value: unknown, at: string, faults: Faults): string {
  const name = faults.text(value, at)
  if (name === '') return name
  if (!PROTOCOL_NAME.test(name))
    faults.add(at, `is ${received(name)}; a protocol's name matches ${PROTOCOL_NAME.source}`)
  else if (name === OWN_PROTOCOL) faults.add(at, `is "${name}", the host's own protocol; take another name`)
  return name
}

function readSeams(value: unknown, at: string, type: string, faults: Faults): ManifestComponent['seams'] {
  if (!isObject(value) || Object.keys(value).length === 0) {
    const example = '{ "toolCall": ["before"] }'
    faults.add(at, `must say which seams the middleware subscribes to, like ${example}, not ${received(value)}`)
    return {}
  }
  for (const [seam, halves] of Object.entries(value)) checkSeam({ [seam]: halves }, at, type, faults)
  return value as ManifestComponent['seams']
}

function readKept(value: unknown, at: string, faults: Faults): ManifestComponent['kept'] {
  const declared = faults.object(value, at)
  if (declared === undefined) return undefined
  faults.known(declared, ['scope', 'schema'], at)
  const scope = faults.oneOf(declared.scope ?? null, KEPT_SCOPES, `${at}.scope`)
  const schema = faults.object(declared.schema ?? null, `${at}.schema`)
  return scope && schema && { scope, schema }
}

function checkSeam(seams: { readonly [seam: string]: unknown }, at: string, type: string, faults: Faults): void {
  class Refused extends Error {}
  try {
    checkSubscriptions(seams, (why) => new Refused(why))
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    faults.add(at, `of "${type}": it ${error.message}`)
  }
}
