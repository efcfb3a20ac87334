import { isObject, messageOf } from '@sluice/core'
import type { Manifest, ManifestComponent } from '../manifest/manifest.ts'
import { PluginError } from './error.ts'
import type { Peer } from './peer.ts'

/** Milliseconds that a plugin has to greet, and then for each of its self-tests. */
const TEST_MS = 5_000

/** What a plugin says of one of its components before it counts. */
export interface Checked {
  readonly plugin: string
  readonly version: string
  readonly componentType: string
  readonly kind: string
  /** `passed`; `none`: it answers, and has no self-test; `failed`; `declared`: it is read in the manifest, and nobody answers for it. */
  readonly result: 'passed' | 'none' | 'failed' | 'declared'
  /** Why it failed. */
  readonly reason?: string
}

/**
 * Starts a plugin, and asks each of its components to test itself where the plugin says that it can. No handler is consulted.
 *
 * @param settingsOf the operator's settings of a component type.
 */
export async function selfTest(
  { name: plugin, version, components }: Manifest,
  peer: Peer,
  settingsOf: (componentType: string) => object,
): Promise<readonly Checked[]> {
  const outcomeOf = async (component: ManifestComponent): Promise<Outcome> => {
    try {
      const greeting = await inTime(peer.start(), plugin, 'did not answer init')
      if (!isObject(greeting) || greeting.selfTest !== true) return { result: 'none' }
      return await testOne(plugin, peer, component, settingsOf(component.componentType))
    } catch (failure) {
      return { result: 'failed', reason: messageOf(failure) }
    }
  }
  return Promise.all(
    components.map(async (component) => {
      const { componentType, kind } = component
      return { plugin, version, componentType, kind, ...(await outcomeOf(component)) }
    }),
  )
}

/** The components of a plugin that has no process. */
export const declared = ({ name: plugin, version, components }: Manifest): readonly Checked[] =>
  components.map(({ componentType, kind }) => ({ plugin, version, componentType, kind, result: 'declared' }))

type Outcome = Pick<Checked, 'result' | 'reason'>

async function testOne(
  plugin: string,
  peer: Peer,
  { componentType, kind, seams }: ManifestComponent,
  component: object,
): Promise<Outcome> {
  const params = { componentType, kind, component, ...(seams !== undefined && { seams }) }
  const { answer } = peer.ask('selfTest', params, {})
  const passed = await inTime(answer, plugin, `did not answer the self-test of ${componentType}`)
  if (passed === null || passed === true) return { result: 'passed' }
  return { result: 'failed', reason: 'its self-test answered neither true nor null' }
}

async function inTime<Value>(coming: Promise<Value>, plugin: string, why: string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_, reject) => {
    const late = () =>
      reject(new PluginError('PLUGIN_TIMED_OUT', `plugin "${plugin}" ${why} in ${TEST_MS} ms`, { plugin }))
    timer = setTimeout(late, TEST_MS)
  })
  try {
    return await Promise.race([coming, over])
  } finally {
    clearTimeout(timer)
  }
}
