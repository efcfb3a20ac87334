// Which package and which room of core may import which. Says each import that points the wrong way, and exits 1.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import ts from 'typescript'

/** `outside` lists the npm packages allowed; without it, any. `node`: may it use Node's own modules? */
const PACKAGES = {
  core: { name: '@sluice/core', imports: [], node: false, outside: ['@standard-schema/spec'] },
  flow: { name: '@sluice/flow', imports: ['core'], node: false },
  plugin: { name: '@sluice/plugin', imports: [], node: true, outside: [] },
  host: { name: '@sluice/host', imports: ['core', 'flow', 'plugin'], node: true },
  server: { name: '@sluice/server', imports: ['core', 'flow', 'host'], node: true },
  cli: { name: 'sluice', imports: ['core', 'flow', 'plugin', 'host', 'server'], node: true },
}

/** The rooms of core. Each may import itself and those before it; `src/index.ts` may import all. */
const ROOMS = [
  'errors',
  'json',
  'state',
  'chat',
  'tools',
  'seams',
  'graph',
  'store',
  'run',
  'agent',
  'middleware',
  'testing',
]

/** Imports of `text`, type-only and dynamic ones included. */
const importsOf = (text) => ts.preProcessFile(text, true, true).importedFiles.map((found) => found.fileName)

/** "packages/core/src/json/digest.ts" -> { owner: 'core', room: 'json' }; `room` is undefined for src/index.ts. */
function placeOf(path) {
  const [, owner, inside] = /^packages\/([^/]+)\/(.*)$/.exec(path) ?? []
  return { owner, room: /^src\/([^/]+)/.exec(inside ?? '')?.[1].replace(/^index\.ts$/, '') || undefined }
}

function relativeFault(path, target) {
  const from = placeOf(path)
  const to = placeOf(target)
  if (to.owner !== from.owner) return `leaves packages/${from.owner}; import another package by its name`
  if (from.owner !== 'core' || from.room === undefined) return undefined
  if (to.room === undefined) return 'a room may not import the index, which knows all rooms'
  if (!ROOMS.includes(to.room)) return `"${to.room}" is no room of core; rooms are: ${ROOMS.join(' ')}`
  if (ROOMS.indexOf(to.room) > ROOMS.indexOf(from.room))
    return `${from.room} stands before ${to.room} and may not import it`
  return undefined
}

function packageFault(owner, specifier, exportsOf) {
  const { imports, node, outside } = PACKAGES[owner]
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
  const target = Object.keys(PACKAGES).find((key) => PACKAGES[key].name === name)
  if (target === owner) return 'a package imports its own files by relative path'
  if (target !== undefined) {
    if (!imports.includes(target))
      return `${owner} may import ${imports.join(', ') || 'no other package'}, not ${target}`
    const entry = `.${specifier.slice(name.length)}`
    return exportsOf(target).includes(entry) ? undefined : `"${entry}" is not in the exports of packages/${target}`
  }
  if (isBuiltin(specifier)) return node ? undefined : `${owner} may not use Node's modules; have it handed in`
  if (outside !== undefined && !outside.includes(name)) {
    return `${owner} may depend on ${outside.join(', ') || 'no npm package'}, not ${name}`
  }
  return undefined
}

/**
 * The faults of one source file, as lines "file imports "x": rule".
 *
 * @param {string} path from the root of the repository, with forward slashes
 * @param {string} text
 * @param {(owner: string) => string[]} exportsOf the entries in a package's `exports`: '.', './node'
 * @returns {string[]}
 */
export function faultsOf(path, text, exportsOf = () => ['.']) {
  const { owner, room } = placeOf(path)
  if (/\.test(-d)?\.ts$/.test(path)) return []
  if (!(owner in PACKAGES)) return [`${path}: package "${owner}" is not in the table of scripts/rooms.mjs`]
  if (owner === 'core' && room !== undefined && !ROOMS.includes(room)) {
    return [`${path}: "${room}" is no room of core; rooms are: ${ROOMS.join(' ')}`]
  }
  return importsOf(text).flatMap((specifier) => {
    const fault = specifier.startsWith('.')
      ? relativeFault(path, posix.join(posix.dirname(path), specifier))
      : packageFault(owner, specifier, exportsOf)
    return fault === undefined ? [] : [`${path} imports "${specifier}": ${fault}`]
  })
}

function main() {
  const root = fileURLToPath(new URL('../', import.meta.url))
  const exportsOf = (owner) =>
    Object.keys(JSON.parse(readFileSync(`${root}packages/${owner}/package.json`, 'utf8')).exports)
  const sources = readdirSync(`${root}packages`)
    .filter((name) => existsSync(`${root}packages/${name}/src`))
    .flatMap((name) =>
      readdirSync(`${root}packages/${name}/src`, { recursive: true })
        .map((file) => `packages/${name}/src/${file.replaceAll('\\', '/')}`)
        .filter((path) => /\.[cm]?tsx?$/.test(path)),
    )
  const faults = sources.flatMap((path) => faultsOf(path, readFileSync(root + path, 'utf8'), exportsOf))
  for (const fault of faults) console.error(fault)
  console.log(`rooms: ${sources.length} files, ${faults.length} imports that point the wrong way`)
  process.exitCode = faults.length === 0 ? 0 : 1
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) main()
