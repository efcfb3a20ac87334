import { readFile } from 'node:fs/promises'
import { messageOf, SluiceError } from '@sluice/core'
import { type CaseResult, openHost, playCases, readCases } from '@sluice/host'
import { EXIT } from '../../exit.ts'
import { escapeControls, printJson } from '../../render/escape.ts'
import { junit } from '../../render/junit.ts'
import { table } from '../../render/table.ts'
import { policyFile } from '../policy-file.ts'
import type { TestFlags } from '../policy-options.ts'
import { writeNamed } from '../write-named.ts'

/** Consults policies about the cases of these files; exits 1 when one comes otherwise than expected. */
export async function testPolicies(files: readonly string[], flags: TestFlags): Promise<number> {
  const { policies, plugin: plugins, pluginConfig, pluginEnv, json, junit: report } = flags
  // Every file is read before anything is installed, so that a fault in one costs no other.
  const suites = await Promise.all(
    files.map(async (file) => ({ file, cases: await readCases(await textOf(file), file) })),
  )
  const host = await openHost({ policies: policyFile(policies), plugins, pluginConfig, pluginEnv })
  try {
    const played: { readonly file: string; readonly results: readonly CaseResult[] }[] = []
    for (const { file, cases } of suites) {
      played.push({ file, results: await playCases(host.runtime.gates.policies, cases) })
    }
    const results = played.flatMap((suite) => suite.results)
    if (json) printJson(results)
    else print(results)
    if (report !== undefined) await writeNamed(report, junit(played))
    return results.some(({ differences }) => differences.length > 0) ? EXIT.failed : EXIT.completed
  } finally {
    await host.close()
  }
}

async function textOf(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const why = (error as { code?: string }).code === 'ENOENT' ? 'there is no such file' : messageOf(error)
    throw new SluiceError('CLI_CASES', `the file of cases ${file} cannot be read: ${why}.`, { file })
  }
}

function print(results: readonly CaseResult[]): void {
  const rows = results.map(({ name, at, verdict, by, differences }) => [
    differences.length === 0 ? '✓' : '✗',
    ...[name, at, verdict, by === 'engine' ? '' : `by ${by}`].map(escapeControls),
  ])
  process.stdout.write(table(rows))
  for (const { name, origin, differences } of results) {
    if (differences.length === 0) continue
    process.stdout.write(`\n${escapeControls(`${origin}  ${name}`)}\n`)
    for (const difference of differences) process.stdout.write(`  ${escapeControls(difference)}\n`)
  }
  const failed = results.filter(({ differences }) => differences.length > 0).length
  process.stderr.write(`${results.length - failed} of ${results.length} cases came as expected\n`)
}
