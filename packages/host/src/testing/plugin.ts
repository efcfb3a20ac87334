import { join } from 'node:path'
import type { Policy } from '@sluice/core'
import { onTestFinished } from 'vitest'
import { type LoadOptions, loadPlugins } from '../plugins/load.ts'
import type { Plugins } from '../plugins/plugins.ts'
import { folderOf } from './folder.ts'

/** A plugin to load: its program, and of its manifest what differs from a gate of tool calls. */
export interface TestPlugin {
  readonly program: string
  readonly manifest?: object
  /** What else lies in its folder. */
  readonly files?: Readonly<Record<string, string>>
}

type TestedPlugins = Plugins & {
  readonly folder: string
  readonly warnings: readonly string[]
  /** The first policy. */
  readonly gate: Policy
}

const GATE = { componentType: 'Gate', kind: 'middleware', seams: { toolCall: ['before', 'after'] } }

/** A loaded plugin of this test, closed after it; warnings are gathered. */
export async function load({ program, manifest, files }: TestPlugin, options: LoadOptions): Promise<TestedPlugins> {
  const content = { name: 'tested', version: '1.0.0', capabilities: [], components: [GATE], ...manifest }
  const folder = folderOf({ 'tested.json': JSON.stringify(content), 'tested.mjs': program, ...files })
  const warnings: string[] = []
  const plugins = await loadPlugins([join(folder, 'tested.json')], {
    onWarning: (message) => warnings.push(message),
    ...options,
  })
  onTestFinished(() => plugins.close())
  return Object.assign(plugins, { folder, warnings, gate: plugins.policies[0] as Policy })
}
