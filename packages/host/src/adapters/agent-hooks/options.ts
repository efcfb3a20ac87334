import type { PolicyRules } from '@sluice/core'
import type { Composition } from './compose.ts'
import type { AgentContext } from './context.ts'
import type { IdentityProvider } from './identity.ts'
import type { InterceptionRecord } from './record.ts'

/** Looks at a context of its own, and answers with a verdict: `{ decision: 'allow' }`, `deny` or `transform`. */
export type Interceptor = (context: AgentContext, options: { readonly signal: AbortSignal }) => unknown

export interface AgentHooksOptions {
  /** In the order in which they are asked; with a name, for records, as `{ name, intercept }`. */
  readonly interceptors: readonly (Interceptor | { readonly name: string; readonly intercept: Interceptor })[]
  /** `AgentHooks` without it. */
  readonly name?: string
  /** `sequential/first_deny` without it. */
  readonly composition?: Composition
  /** Everybody is asked and recorded, and nothing is applied. */
  readonly evaluateOnly?: boolean
  /** `jcs-sha256` without it. */
  readonly identityProvider?: IdentityProvider
  /** How contexts name the agent; `sluice` without it. */
  readonly agent?: { readonly id: string; readonly framework?: string }
  /** Names of the tools that the agent may call, for `agent_startup`: no step shows them. */
  readonly tools?: readonly string[]
  /** Milliseconds that one interceptor may take; 5,000 without it. */
  readonly interceptorTimeoutMs?: number
  /** `false`: nobody may lift a denial, and one that may be lifted is a plain one. */
  readonly approvals?: boolean
  /** What whoever approves is shown in place of the context. */
  readonly redact?: (context: AgentContext) => AgentContext
  /** Given the record of each emission. */
  readonly onRecord?: (record: InterceptionRecord) => void
  /** How it is installed. What the host finds wrong ends the run, so there is no `onFailure`. */
  readonly rules?: Pick<PolicyRules, 'version' | 'origin' | 'mode' | 'match'>
}
