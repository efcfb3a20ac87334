// The tables of core as values: their source is plain enough to run once its types are taken away.
import { readFileSync } from 'node:fs'
import ts from 'typescript'

async function read(file) {
  const source = readFileSync(new URL(`../packages/core/src/seams/${file}`, import.meta.url), 'utf8')
  const { outputText } = ts.transpileModule(source, { compilerOptions: { module: ts.ModuleKind.ESNext } })
  return import(`data:text/javascript,${encodeURIComponent(outputText)}`)
}

export const readSeamTable = async () => (await read('table.ts')).SEAMS
export const readHookTable = async () => (await read('hook-table.ts')).HOOKS
