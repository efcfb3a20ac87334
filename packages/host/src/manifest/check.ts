import { CAPABILITIES, type Capability } from '@sluice/plugin/wire'
import { NO_FILES, readComponent } from './component.ts'
import { type Faults, received } from './faults.ts'
import type { ManifestContent, ManifestTool } from './manifest.ts'
import { readTool } from './tool.ts'

const FIELDS = [
  'name',
  'version',
  'description',
  'command',
  'capabilities',
  'components',
  'tools',
  'discoverTools',
  '$schema',
]

/** Reads what a manifest file says; what is wrong goes to `faults`, and then the result is of no use. */
export function readContent(value: unknown, faults: Faults): ManifestContent | undefined {
  const declared = faults.object(value ?? null, '')
  if (declared === undefined) return undefined
  faults.known(declared, [...FIELDS, 'files'], '')
  if (declared.files !== undefined) faults.add('files', NO_FILES)
  const discoverTools = faults.flag(declared.discoverTools, 'discoverTools') ?? false
  const components = defined(
    faults.items(declared.components, 'components')?.map((item, i) => readComponent(item, `components[${i}]`, faults)),
  )
  const types = components.map(({ componentType }) => componentType)
  const tools = defined(
    faults.items(declared.tools, 'tools')?.map((item, i) => readTool(item, `tools[${i}]`, types, faults)),
  )
  refuseTwice('components', types, faults)
  refuseTwice('tools', namesOf(tools), faults)
  if (components.length === 0 && tools.length === 0 && !discoverTools && faults.list.length === 0) {
    faults.add('', 'it provides nothing; declare at least one entry in "components" or "tools"')
  }
  return {
    name: faults.text(declared.name, 'name'),
    version: faults.text(declared.version, 'version'),
    command: readCommand(declared.command, faults),
    capabilities: readCapabilities(declared.capabilities, faults),
    components,
    tools,
    discoverTools,
  }
}

/**
 * Reads what a plugin answers when it is asked for its tools; what is wrong goes to `faults`.
 *
 * @param declared the manifest of that plugin, whose types and tools are known.
 */
export function readDiscovered(value: unknown, declared: ManifestContent, faults: Faults): readonly ManifestTool[] {
  const types = declared.components.map(({ componentType }) => componentType)
  const tools = defined(
    faults.items(value ?? null, '')?.map((item, i) => readTool(item, `[${i}]`, types, faults, 'discovered')),
  )
  refuseTwice('', [...namesOf(declared.tools), ...namesOf(tools)], faults)
  return tools
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

const namesOf = (tools: readonly ManifestTool[]) => tools.map(({ name }) => name)

const defined = <Item>(items: readonly (Item | undefined)[] = []): readonly Item[] =>
  items.filter((item) => item !== undefined)
