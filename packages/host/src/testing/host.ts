import { join } from 'node:path'
import type { JsonObject, RunEvent, RunOutcome } from '@sluice/core'
import { onTestFinished } from 'vitest'
import { type Host, type HostOptions, openHost } from '../machine/host.ts'
import { folderOf } from './folder.ts'

/** A host of this test, closed after it, with an environment of nothing but the path to programs. */
export async function hostOf(options: HostOptions): Promise<Host & { readonly warnings: readonly string[] }> {
  const warnings: string[] = []
  const host = await openHost({
    env: { PATH: process.env.PATH },
    onWarning: (message) => warnings.push(message),
    ...options,
  })
  onTestFinished(() => host.close())
  return Object.assign(host, { warnings })
}

/** A folder with a plugin in it: its manifest, its program, and other files. */
export function pluginFolder(
  program: string,
  manifest: object,
  files: Readonly<Record<string, string>> = {},
): { readonly folder: string; readonly manifest: string } {
  const content = { name: 'tested', version: '1.0.0', capabilities: [], components: [], ...manifest }
  const folder = folderOf({ 'tested.json': JSON.stringify(content), 'tested.mjs': program, ...files })
  return { folder, manifest: join(folder, 'tested.json') }
}

const ref = (id: string) => ({ $component_ref: id })
export const text = (title: string) => ({ title, type: 'string' })

/** A flow whose nodes run one after another, from a start to an end that takes everything. */
export function chain(nodes: Readonly<Record<string, object>>, inputs: readonly object[] = []): string {
  const names = ['start', ...Object.keys(nodes), 'end']
  const all: Readonly<Record<string, object>> = {
    start: { component_type: 'StartNode', inputs },
    ...nodes,
    end: { component_type: 'EndNode' },
  }
  return JSON.stringify({
    component_type: 'Flow',
    agentspec_version: '26.1.2',
    name: 'tested',
    start_node: ref('start'),
    nodes: names.map(ref),
    control_flow_connections: names.slice(1).map((to, i) => ({
      component_type: 'ControlFlowEdge',
      name: `edge ${i}`,
      from_node: ref(names[i] as string),
      to_node: ref(to),
    })),
    $referenced_components: Object.fromEntries(names.map((name) => [name, { id: name, name, ...all[name] }])),
  })
}

/** A file with this document, removed after the test. */
export const fileOf = (document: string): string => join(folderOf({ 'flow.json': document }), 'flow.json')

/** Runs a flow on a host and says how it ended. */
export async function runOn(host: Host, file: string, input: JsonObject = {}): Promise<RunOutcome<JsonObject>> {
  const { graph } = await host.loadFlow(file)
  return host.runtime.settle(graph, input)
}

/** The same, with what it publishes. */
export async function eventsOn(host: Host, file: string, input: JsonObject = {}): Promise<readonly RunEvent[]> {
  const { graph } = await host.loadFlow(file)
  const events: RunEvent[] = []
  for await (const event of host.runtime.stream(graph, input)) events.push(event)
  return events
}
