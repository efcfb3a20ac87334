import { SluiceError, type Tool } from '@sluice/core'
import { type Checked, openHost } from '@sluice/host'
import { EXIT } from '../../exit.ts'
import { escapeControls, printJson } from '../../render/escape.ts'
import { table } from '../../render/table.ts'
import { policyFile } from '../policy-file.ts'
import type { CheckFlags } from '../policy-options.ts'

/** Starts every plugin and prints what each component says of itself; the exit code says whether all is well. */
export async function checkPolicies(flags: CheckFlags): Promise<number> {
  const { plugin: plugins = [], pluginConfig, pluginEnv, json } = flags
  const policies = policyFile(flags.policies)
  if (policies === undefined && plugins.length === 0)
    throw new SluiceError(
      'CLI_FLAGS',
      'there is nothing to check; name a plugin with --plugin, or a file with --policies.',
    )
  const host = await openHost({ policies, plugins, pluginConfig, pluginEnv })
  try {
    const checked = await host.check()
    const { policies: chain } = await host.explain()
    const named = (of: 'rule' | 'hooks') => [...new Set(chain.flatMap(({ kind, name }) => (kind === of ? name : [])))]
    const found = { components: checked, tools: host.tools.map(toolOf), rules: named('rule'), hooks: named('hooks') }
    if (json) printJson(found)
    else process.stdout.write(textOf(found))
    if (chain.length === 0) process.stderr.write('there is no policy among these: no call is decided by them\n')
    return checked.some(({ result }) => result === 'failed') ? EXIT.wrong : EXIT.completed
  } finally {
    await host.close()
  }
}

const WORDS = {
  passed: 'passed its self-test',
  none: 'answers; it has no self-test',
  failed: 'failed',
  declared: 'read in the manifest; there is nothing to start',
} as const

interface Found {
  readonly components: readonly Checked[]
  readonly tools: readonly { readonly name: string; readonly plugin: string }[]
  readonly rules: readonly string[]
  readonly hooks: readonly string[]
}

const toolOf = ({ name, source }: Tool) => ({ name, plugin: source.replace(/^plugin:/, '') })

function textOf({ components, tools, rules, hooks }: Found): string {
  const rows = components.map(({ result, reason, componentType, kind, plugin, version }) => [
    result === 'failed' ? '✗' : '✓',
    componentType,
    kind,
    `${plugin} ${version}`,
    reason === undefined ? WORDS[result] : `${WORDS[result]}: ${reason}`,
  ])
  const ofTools = tools.map(({ name, plugin }) => ['✓', name, 'tool', plugin, 'read; no tool is called'])
  const ofRules = rules.map((rule) => ['✓', rule, 'rule', '', 'checked when it was read'])
  // A hook decides whenever it is run, so none is.
  const ofHooks = hooks.map((name) => ['✓', name, 'hooks', '', 'settings checked; no hook is run'])
  return table([...rows, ...ofTools, ...ofRules, ...ofHooks].map((row) => row.map(escapeControls)))
}
