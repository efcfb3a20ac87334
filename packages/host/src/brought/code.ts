import { type JsonObject, SluiceError } from '@sluice/core'
import { readContent } from '../manifest/check.ts'
import { Faults } from '../manifest/faults.ts'
import type { Kind, ManifestContent } from '../manifest/manifest.ts'
import { nameFault } from './names.ts'

/** Code that comes with a request. */
export interface RequestCode {
  readonly tools?: readonly SubmittedTool[]
  readonly plugins?: readonly SubmittedPlugin[]
  readonly files?: readonly SubmittedFile[]
}

export interface SubmittedTool {
  readonly name: string
  /** A program that reads its arguments as JSON from stdin and prints JSON. */
  readonly source: string
  /** The program that runs it; without it, its first line says so. */
  readonly interpreter?: string
}

export interface SubmittedPlugin {
  /** As its manifest has it. */
  readonly name: string
  readonly manifest: JsonObject
  /** An ES module that calls the global `serve`. */
  readonly source: string
}

export interface SubmittedFile {
  /** Within the folder in which tools and plugins run. */
  readonly path: string
  readonly content: string
}

/** How much code one request may bring. */
export interface CodeLimits {
  readonly maxTools: number
  readonly maxPlugins: number
  readonly maxFiles: number
  /** Of all sources, manifests and files together. */
  readonly maxBytes: number
}

export const CODE_LIMITS: CodeLimits = { maxTools: 10, maxPlugins: 5, maxFiles: 20, maxBytes: 256 * 1024 }

/** What a request may bring for its own run. */
const KINDS: readonly Kind[] = ['node', 'transform', 'provider', 'component']

/**
 * Checks code before any of it is written down.
 *
 * @throws SluiceError `CODE_INVALID` with all that is wrong.
 */
export function checkCode({ tools = [], plugins = [], files = [] }: RequestCode, limits: CodeLimits): void {
  const faults = new Faults()
  const counts = { tools: limits.maxTools, plugins: limits.maxPlugins, files: limits.maxFiles }
  for (const [name, list] of Object.entries({ tools, plugins, files })) {
    const most = counts[name as keyof typeof counts]
    if (list.length > most) faults.add(name, `has ${list.length} entries; ${most} is the most`)
  }
  const bytes = sizeOf({ tools, plugins, files })
  if (bytes > limits.maxBytes) faults.add('', `the code has ${bytes} bytes; ${limits.maxBytes} is the most`)
  // What is too much is not looked at.
  if (faults.list.length > 0) throw refused(faults)
  for (const [i, tool] of tools.entries()) checkTool(tool, `tools[${i}]`, faults)
  const contents = plugins.map((plugin, i) => checkPlugin(plugin, `plugins[${i}]`, faults))
  for (const [i, { path }] of files.entries()) addFault('file', path, `files[${i}].path`, faults)
  const served = contents.flatMap((content) => content?.tools.map(({ name }) => name) ?? [])
  refuseTwice('tools', [...tools.map(({ name }) => name), ...served], faults)
  refuseTwice(
    'plugins',
    plugins.map(({ name }) => name),
    faults,
  )
  refuseOverlap(
    files.map(({ path }) => path),
    faults,
  )
  if (faults.list.length > 0) throw refused(faults)
}

function refused({ list }: Faults): SluiceError {
  const most = list.slice(0, 8).join('; ')
  return new SluiceError('CODE_INVALID', `the code of this request is not what it may be: ${most}.`)
}

function sizeOf({ tools, plugins, files }: Required<RequestCode>): number {
  const texts = [
    ...tools.map(({ source }) => source),
    ...plugins.flatMap(({ source, manifest }) => [source, JSON.stringify(manifest)]),
    ...files.map(({ content }) => content),
  ]
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
}

function addFault(kind: Parameters<typeof nameFault>[0], name: string, at: string, faults: Faults): void {
  const fault = nameFault(kind, name)
  if (fault !== undefined) faults.add(at, fault)
}

function checkTool({ name, source, interpreter }: SubmittedTool, at: string, faults: Faults): void {
  addFault('tool', name, `${at}.name`, faults)
  if (interpreter !== undefined) addFault('interpreter', interpreter, `${at}.interpreter`, faults)
  else if (interpreterIn(source) === undefined)
    faults.add(
      `${at}.source`,
      'does not say what runs it in a first line of up to 255 characters; begin it with "#!/usr/bin/env node", or give "interpreter"',
    )
}

/** The kernel reads no more of a first line either. */
const MAX_LINE = 255

/** What the first line of a program says runs it, and with what: all of the rest is one argument, as the kernel has it. */
export function interpreterIn(source: string): readonly string[] | undefined {
  const end = source.slice(0, MAX_LINE + 1).indexOf('\n')
  const line = end === -1 ? source : source.slice(0, end)
  if (!line.startsWith('#!') || line.length > MAX_LINE) return undefined
  const text = trimBlanks(line.endsWith('\r') ? line.slice(2, -1) : line.slice(2))
  const blank = text.search(/[ \t]/)
  const file = blank === -1 ? text : text.slice(0, blank)
  if (!file.startsWith('/') || file === '/' || /\s/.test(file) || /[\r\0]/.test(text)) return undefined
  return blank === -1 ? [file] : [file, trimBlanks(text.slice(blank))]
}

const isBlank = (char: string | undefined): boolean => char === ' ' || char === '\t'

/** By hand: a pattern for a run of blanks at the end is tried at each of them. */
function trimBlanks(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && isBlank(text[start])) start++
  while (end > start && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}

/** A plugin of a request has components that its document names, and tools that they serve; all else is for whoever runs the machine. */
function checkPlugin({ name, manifest }: SubmittedPlugin, at: string, faults: Faults): ManifestContent | undefined {
  addFault('plugin', name, `${at}.name`, faults)
  const own = new Faults()
  const content = readContent(manifest, own)
  for (const fault of [...own.list, ...own.warnings]) faults.add(`${at}.manifest`, fault)
  if (content === undefined) return undefined
  const refuse = (where: string, why: string) => faults.add(`${at}.manifest${where}`, why)
  if (content.name !== name) refuse('.name', `is not "${name}", as the plugin is called`)
  for (const [i, { kind }] of content.components.entries()) {
    if (KINDS.includes(kind)) continue
    const owner = kind === 'middleware' ? 'policies are installed by the operator alone' : 'the operator installs it'
    refuse(`.components[${i}].kind`, `is "${kind}": ${owner}; a request may bring: ${KINDS.join(', ')}`)
  }
  if (content.command !== undefined) refuse('.command', 'is not for a request: its "source" is what runs')
  if (content.discoverTools) refuse('.discoverTools', 'is not for a request: declare the tools')
  for (const [i, { path, shadows }] of content.tools.entries()) {
    if (path !== undefined) refuse(`.tools[${i}].path`, 'names a program; bring it in "tools" of the request')
    if (shadows) refuse(`.tools[${i}].shadows`, 'is not for a request: no installed tool is replaced')
  }
  return content
}

function refuseTwice(where: string, names: readonly string[], faults: Faults): void {
  const seen = new Set<string>()
  for (const name of names) {
    // Not every disk tells them apart.
    const key = name.toLowerCase()
    if (seen.has(key)) faults.add(where, `has ${JSON.stringify(name.slice(0, 80))} more than once`)
    seen.add(key)
  }
}

/** No file is there twice, nor is the folder of another. */
function refuseOverlap(paths: readonly string[], faults: Faults): void {
  refuseTwice('files', paths, faults)
  const all = new Set(paths.map((path) => path.toLowerCase()))
  for (const path of paths) {
    const steps = path.toLowerCase().split('/')
    const above = steps.slice(1).map((_, i) => steps.slice(0, i + 1).join('/'))
    const taken = above.find((folder) => all.has(folder))
    if (taken !== undefined) faults.add('files', `has "${taken.slice(0, 80)}" as a file and as a folder`)
  }
}
