/** What a caller may do: begin runs and look at their own, answer questions, read everybody's, change and fork threads, all. */
export const SCOPES = ['run', 'answer', 'read', 'edit', 'admin'] as const
export type Scope = (typeof SCOPES)[number]

/** Who calls, as far as the server knows. */
export interface Principal {
  /** `token`, or what the embedder's `authenticate` says; `local` where nobody has to say who they are. */
  readonly kind: string
  /** Letters, digits, `.`, `_`, `@`, `-`; no slash. */
  readonly id: string
  readonly scopes: readonly Scope[]
  /** What else an `approvers` expression may ask about. */
  readonly claims?: Readonly<Record<string, unknown>>
}

/** Whoever calls where nobody has to say who they are. */
export const LOCAL: Principal = { kind: 'local', id: 'local', scopes: SCOPES }

/** Whose threads a caller's are. */
export const ownerOf = ({ kind, id }: Principal): string => (kind === 'local' ? '' : id)
