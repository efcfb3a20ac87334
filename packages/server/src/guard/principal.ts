/** What a caller may do: begin runs and look at their own, answer questions, read everybody's, change and fork threads, all. */
export const SCOPES = ['run', 'answer', 'read', 'edit', 'admin'] as const
export type Scope = (typeof SCOPES)[number]

/** Who calls, as far as the server knows. */
export interface Principal {
  /** `token`, or what the embedder's `authenticate` says; `local` where nobody has to say who they are. */
  readonly kind: string
  /** Up to 128 letters, digits, `.`, `_`, `@`, `-`, a letter or a digit first; no slash. */
  readonly id: string
  readonly scopes: readonly Scope[]
  /** What else an `approvers` expression may ask about. */
  readonly claims?: Readonly<Record<string, unknown>>
}

/** What names a principal: no slash is in it, so none reaches into the threads of another. */
export const PRINCIPAL_ID = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,127}$/

/** Whoever calls where nobody has to say who they are. */
export const LOCAL: Principal = { kind: 'local', id: 'local', scopes: SCOPES }

export const isLocal = ({ kind }: Pick<Principal, 'kind'>): boolean => kind === 'local'

/** Whose threads a caller's are. */
export const ownerOf = (principal: Principal): string => (isLocal(principal) ? '' : principal.id)
