import type { Half, Json, JsonObject, Seam } from '@sluice/core'
import type { PluginConfig } from '../plugins/config-arguments.ts'
import type { Path } from './faults.ts'

/** How a policy is installed, as the file writes it. */
export interface Terms {
  readonly mode?: 'enforce' | 'shadow' | 'off'
  readonly onFailure?: 'fail' | 'pass'
  readonly timeoutMs?: number
  readonly breaker?: { readonly failures: number; readonly openMs: number }
  /** CEL. */
  readonly match?: string
  readonly fields?: readonly string[]
  readonly mayModify?: readonly string[]
}

interface Placed {
  readonly path: Path
  /** `sluice.yaml:8` */
  readonly origin: string
  readonly terms: Terms
}

export interface PluginEntry extends Placed {
  readonly kind: 'plugin'
  /** The manifest, as written. */
  readonly plugin: string
  readonly config: PluginConfig
  /** Names of variables that its process sees. */
  readonly env: readonly string[]
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest?: string
}

export interface RuleEntry extends Placed {
  readonly kind: 'rule'
  readonly rule: string
  readonly seam: Seam
  readonly half: Half
  /** CEL; always where there is none. */
  readonly when?: string
  readonly verdict: string
  /** Templates. */
  readonly reason?: string
  readonly input?: Json
  readonly value?: Json
  readonly ask?: string | JsonObject
  readonly delayMs?: number | string
  readonly code?: string
  readonly labels?: readonly string[]
}

/** Hooks that were written for something else, as one policy. */
export interface AdapterEntry extends Placed {
  readonly kind: 'adapter'
  readonly adapter: 'command-hooks'
  readonly name: string
  /** Names of variables that its hooks see. */
  readonly env: readonly string[]
  /** Either these, or the path of the settings file that has them. */
  readonly hooks?: JsonObject
  readonly settings?: string
}

export type Entry = PluginEntry | RuleEntry | AdapterEntry

/** By seam: policies that must be there and enforce. */
export type Requirements = { readonly [S in Seam]?: readonly string[] }

export interface PolicyFile {
  /** As named. */
  readonly file: string
  readonly entries: readonly Entry[]
  readonly require: Requirements
}
