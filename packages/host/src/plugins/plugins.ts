import type { ChatModel, JsonObject, Policy, Tool } from '@sluice/core'
import type { Kind, Manifest, ManifestComponent } from '../manifest/manifest.ts'
import type { PluginCallContext } from '../plugin/direct.ts'
import { type Encoder, OWN_ENCODER, remoteEncoder } from '../plugin/encoder.ts'
import { PluginError } from '../plugin/error.ts'
import { remoteModel } from '../plugin/model.ts'
import {
  applyTransform,
  type ComponentSite,
  executeNode,
  type NodeResult,
  type TransformCall,
  type TransformVerdict,
} from '../plugin/node.ts'
import type { Peer } from '../plugin/peer.ts'
import { type Checked, declared, selfTest } from '../plugin/self-test.ts'

/** A component type that a loaded plugin provides, as its manifest says. */
export interface PluginType extends Omit<ManifestComponent, 'componentType'> {
  readonly plugin: string
  readonly version: string
}

/** The component types of loaded plugins. */
export interface PluginTypes {
  get(type: string): PluginType | undefined
  types(): readonly string[]
}

/** A loaded plugin, and where its handlers run; a process starts when it is first asked. */
export interface LoadedPlugin {
  readonly manifest: Manifest
  readonly peer: Peer | undefined
}

export interface PluginsParts {
  readonly loaded: readonly LoadedPlugin[]
  readonly policies: readonly Policy[]
  readonly tools: readonly Tool[]
  /** Tools that may take the place of one of the same name from elsewhere. */
  readonly shadowing: ReadonlySet<string>
  readonly silenceMs: number
}

interface Place {
  readonly component: ManifestComponent
  readonly manifest: Manifest
  readonly peer: Peer | undefined
}

/** What the loaded plugins provide. */
export class Plugins {
  /** In load order; within a manifest, in listed order. */
  readonly policies: readonly Policy[]
  readonly tools: readonly Tool[]
  readonly shadowing: ReadonlySet<string>
  readonly types: PluginTypes
  readonly #loaded: readonly LoadedPlugin[]
  readonly #places = new Map<string, Place>()
  readonly #silenceMs: number

  constructor({ loaded, policies, tools, shadowing, silenceMs }: PluginsParts) {
    this.policies = policies
    this.tools = tools
    this.shadowing = shadowing
    this.#loaded = loaded
    this.#silenceMs = silenceMs
    for (const { manifest, peer } of loaded) {
      for (const component of manifest.components) {
        this.#places.set(component.componentType, { component, manifest, peer })
      }
    }
    this.types = {
      get: (type) => typeOf(this.#places.get(type)),
      types: () => [...this.#places.keys()],
    }
  }

  /**
   * Executes a plugin node.
   *
   * @param node the component as the document writes it.
   * @throws PluginError `PLUGIN_TYPE` for a type that is no plugin node; what the plugin threw.
   */
  async execute(
    componentType: string,
    node: JsonObject,
    input: JsonObject,
    ctx: PluginCallContext,
  ): Promise<NodeResult> {
    return executeNode(this.#site(componentType, 'node'), node, input, ctx)
  }

  /** Applies a plugin transform. Throws like {@link execute}. */
  async apply(componentType: string, call: TransformCall, ctx: PluginCallContext): Promise<TransformVerdict> {
    return applyTransform(this.#site(componentType, 'transform'), call, ctx)
  }

  /**
   * The model that a plugin's provider answers for.
   *
   * @param config the `llm_config` as the document writes it.
   * @throws PluginError `PLUGIN_TYPE`.
   */
  model(componentType: string, config: JsonObject): ChatModel {
    const site = this.#site(componentType, 'provider')
    return remoteModel(site, config, this.types.get(componentType)?.stream === true)
  }

  /** What {@link encoder} takes: the host's own first. */
  get protocols(): readonly string[] {
    return [OWN_ENCODER.protocol, ...this.#encoders.flatMap(({ protocol }) => protocol ?? [])]
  }

  get #encoders() {
    return [...this.#places.values()].map(({ component }) => component).filter(({ kind }) => kind === 'encoder')
  }

  /**
   * The encoder that renders this protocol; the host renders `sluice` by itself, each event under its type.
   *
   * @throws PluginError `PLUGIN_PROTOCOL_UNKNOWN` with those there are.
   */
  encoder(protocol: string): Encoder {
    if (protocol === OWN_ENCODER.protocol) return OWN_ENCODER
    const found = this.#encoders.find((component) => component.protocol === protocol)
    if (found === undefined) {
      throw new PluginError(
        'PLUGIN_PROTOCOL_UNKNOWN',
        `nobody renders protocol "${protocol}"; protocols are: ${this.protocols.join(', ')}.`,
      )
    }
    const { componentType, contentType = '' } = found
    return remoteEncoder(this.#site(componentType, 'encoder'), { protocol, contentType })
  }

  /** Starts every plugin that has handlers, and lets each of its components test itself. */
  async check(): Promise<readonly Checked[]> {
    const settingsOf = (type: string) => this.policies.find(({ name }) => name === type)?.component ?? {}
    const checked = await Promise.all(
      this.#loaded.map(({ manifest, peer }) =>
        peer === undefined ? declared(manifest) : selfTest(manifest, peer, settingsOf),
      ),
    )
    return checked.flat()
  }

  get names(): readonly string[] {
    return this.#loaded.map(({ manifest }) => manifest.name)
  }

  /** Capabilities that a plugin of these asks for. */
  get capabilities(): ReadonlySet<string> {
    return new Set(this.#loaded.flatMap(({ manifest }) => manifest.capabilities))
  }

  /** Names of plugins that answer no call any more. */
  get lost(): readonly string[] {
    return this.#loaded.flatMap(({ manifest, peer }) => (peer?.isLost === true ? manifest.name : []))
  }

  /** Asks every process to end, and kills those that do not within a second. */
  async close(): Promise<void> {
    await Promise.all(this.#loaded.map(({ peer }) => peer?.close()))
  }

  #site(componentType: string, kind: Kind): ComponentSite {
    const place = this.#places.get(componentType)
    if (place === undefined || place.component.kind !== kind || place.peer === undefined) {
      const names = [...this.#places].filter(([, { component }]) => component.kind === kind).map(([name]) => name)
      throw new PluginError(
        'PLUGIN_TYPE',
        `no plugin provides a ${kind} of type "${componentType}"; provided are: ${names.join(', ') || 'none'}.`,
      )
    }
    return { plugin: place.manifest.name, peer: place.peer, componentType, silenceMs: this.#silenceMs }
  }
}

/** Where nothing is loaded. */
export const NO_PLUGINS = new Plugins({ loaded: [], policies: [], tools: [], shadowing: new Set(), silenceMs: 0 })

function typeOf(place: Place | undefined): PluginType | undefined {
  if (place === undefined) return undefined
  const { componentType: _, ...declared } = place.component
  return { ...declared, plugin: place.manifest.name, version: place.manifest.version }
}
