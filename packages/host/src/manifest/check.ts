import { CAPABILITIES, type Capability } from '@sluice/plugin/wire'
import { readComponent } from './component.ts'
import { type Faults, received } from './faults.ts'
import type { ManifestContent } from './manifest.ts'
import { readTool } from './tool.ts'

/** Top-level fields of the system this protocol comes from that have no place here yet. */
const LATER = ['files', 'discoverTools']
const FIELDS = ['name', 'version', 'description', 'command', 'capabilities', 'components', 'tools', '$schema']

/** Reads what a manifest file says; what is wrong goes to `faults`, and then the result is of no use. */
export function readContent(value: unknown, faults: Faults): ManifestContent | undefined {
  const declared = faults.object(value ?? null, '')
  if (declared === undefined) return undefined
  faults.known(declared, [...FIELDS, ...LATER], '')
  for (const field of LATER) {
    if (declared[field] !== undefined && declared[field] !== false)
      faults.add(field, 'is not supported yet; leave it out')
  }
  const components = defined(
    faults.items(declared.components, 'components')?.map((item, i) => readComponent(item, `components[${i}]`, faults)),
  )
  const types = components.map(({ componentType }) => componentType)
  const tools = defined(
    faults.items(declared.tools, 'tools')?.map((item, i) => readTool(item, `tools[${i}]`, types, faults)),
  )
  refuseTwice('components', types, faults)
  refuseTwice(
    'tools',
    tools.map(({ name }) => name),
    faults,
  )
  if (components.length === 0 && tools.length === 0 && faults.list.length === 0) {
    faults.add('', 'it provides nothing; declare at least one entry in "components" or "tools"')
  }
  return {
    name: faults.text(declared.name, 'name'),
    version: faults.text(declared.version, 'version'),
    command: readCommand(declared.command, faults),
    capabilities: readCapabilities(declared.capabilities, faults),
    components,
    tools,
  }
}

function readCommand(value: unknown, faults: Faults): readonly string[] | undefined {
  const command = faults.texts(value, 'command')
  if (command?.length === 0) faults.add('command', 'must name at least a program')
  return command
}

function readCapabilities(value: unknown, faults: Faults): readonly Capability[] {
  const asked = faults.items(value, 'capabilities') ?? []
  asked.forEach((capability, i) => {
    if (CAPABILITIES.includes(capability as Capability)) return
    faults.add(`capabilities[${i}]`, `is ${received(capability)}; capabilities are: ${CAPABILITIES.join(', ')}`)
  })
  return asked as readonly Capability[]
}

function refuseTwice(where: string, names: readonly string[], faults: Faults): void {
  for (const name of new Set(names.filter((name, i) => name !== '' && names.indexOf(name) !== i))) {
    faults.add(where, `declares "${name}" more than once`)
  }
}

const defined = <Item>(items: readonly (Item | undefined)[] = []): readonly Item[] =>
  items.filter((item) => item !== undefined)
