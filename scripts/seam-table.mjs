// The seam table as a value: core's source is plain enough to run once its types are taken away.
import { readFileSync } from 'node:fs'
import ts from 'typescript'

export async function readSeamTable() {
  const source = readFileSync(new URL('../packages/core/src/seams/table.ts', import.meta.url), 'utf8')
  const { outputText } = ts.transpileModule(source, { compilerOptions: { module: ts.ModuleKind.ESNext } })
  const { SEAMS } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`)
  return SEAMS
}
