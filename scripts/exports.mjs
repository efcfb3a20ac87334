// Holds each package's exports against packages/<p>/exports.txt, so that a new export is a line somebody approves.
// With --write, writes the lists instead.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('../', import.meta.url))

/** The entries of a package and the sources they are built from: [['', 'src/index.ts'], ['./testing', 'src/testing.ts']] */
function entriesOf(folder) {
  const { exports } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'))
  return Object.entries(exports)
    .map(([entry, target]) => [
      entry === '.' ? '' : `${entry} `,
      `${folder}/${target.default.replace('./dist', 'src')}`,
    ])
    .map(([prefix, built]) => [prefix, built.replace(/\.js$/, '.ts')])
    .filter(([, source]) => existsSync(source))
}

function isValue(symbol, checker) {
  const typeOnly = symbol.declarations?.some((at) => ts.isExportSpecifier(at) && ts.isTypeOnlyExportDeclaration(at))
  const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  return !typeOnly && (target.flags & ts.SymbolFlags.Value) !== 0
}

function exportedLines(source, checker) {
  const module = checker.getSymbolAtLocation(source)
  return (module === undefined ? [] : checker.getExportsOfModule(module))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((symbol) => (isValue(symbol, checker) ? symbol.name : `type ${symbol.name}`))
}

function difference(listed, found) {
  return [
    ...found.filter((line) => !listed.includes(line)).map((line) => `  + ${line}`),
    ...listed.filter((line) => !found.includes(line)).map((line) => `  - ${line}`),
  ]
}

const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile)
const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: ['vitest.config.ts'] }, ts.sys, root)
const packages = readdirSync(`${root}packages`, { withFileTypes: true })
  .filter((at) => at.isDirectory())
  .map(({ name }) => ({
    name,
    list: `${root}packages/${name}/exports.txt`,
    entries: entriesOf(`${root}packages/${name}`),
  }))
const program = ts.createProgram(
  packages.flatMap(({ entries }) => entries.map(([, source]) => source)),
  options,
)
const checker = program.getTypeChecker()

for (const { name, list, entries } of packages) {
  const found = entries.flatMap(([prefix, source]) =>
    exportedLines(program.getSourceFile(source), checker).map((line) => prefix + line),
  )
  if (process.argv.includes('--write')) {
    writeFileSync(list, found.map((line) => `${line}\n`).join(''))
    continue
  }
  const listed = existsSync(list) ? readFileSync(list, 'utf8').split('\n').filter(Boolean) : []
  const lines = difference(listed, found)
  if (lines.length === 0) continue
  console.error([`packages/${name}/exports.txt differs from src:`, ...lines].join('\n'))
  process.exitCode = 1
}
if (process.exitCode === 1) console.error('When the change is meant: node scripts/exports.mjs --write')
