/**
 * The seams: every place where middleware is consulted, the verdicts each half admits, and what a refusal comes to. The
 * table is closed and stands only here; types, the manifest check, the verdict reader, the handshake and the reference page
 * are derived from it.
 *
 * `reject` and `fail` come to a `stop` (the run ends from outside; nothing inside can catch it) or to an `error` (thrown to
 * whoever made the call, who may catch it; an agent turns a refused tool call into a reply to its model).
 */
export const SEAMS = closed({
  run: {
    before: ['proceed', 'modify', 'reject', 'suspend'],
    after: ['pass', 'replace', 'fail'],
    reject: 'stop',
    fail: 'stop',
  },
  node: {
    before: ['proceed', 'modify', 'replace', 'reject', 'suspend'],
    after: ['pass', 'replace', 'fail'],
    reject: 'stop',
    fail: 'stop',
  },
  nodeError: {
    before: [],
    after: ['pass', 'replace', 'retry', 'fail'],
    reject: 'stop',
    fail: 'stop',
  },
  agentRound: {
    before: ['proceed', 'reject'],
    after: ['pass', 'fail'],
    reject: 'error',
    fail: 'error',
  },
  modelCall: {
    before: ['proceed', 'modify', 'replace', 'reject', 'suspend'],
    after: ['pass', 'replace', 'retry', 'fail'],
    reject: 'error',
    fail: 'error',
  },
  toolCall: {
    before: ['proceed', 'modify', 'replace', 'reject', 'suspend'],
    after: ['pass', 'replace', 'reject', 'fail'],
    reject: 'error',
    fail: 'stop',
  },
  ask: {
    before: ['proceed', 'replace'],
    after: ['pass'],
    reject: 'stop',
    fail: 'stop',
  },
} as const satisfies Record<string, SeamRow>)

interface SeamRow {
  readonly before: readonly Action[]
  readonly after: readonly Action[]
  readonly reject: 'stop' | 'error'
  readonly fail: 'stop' | 'error'
}

export type Action = 'proceed' | 'modify' | 'replace' | 'reject' | 'suspend' | 'pass' | 'retry' | 'fail'
export type Seam = keyof typeof SEAMS
export type Half = 'before' | 'after'

/** The actions a half admits, as a type. */
export type Admitted<S extends Seam, H extends Half> = (typeof SEAMS)[S][H][number]

export const SEAM_NAMES = Object.freeze(Object.keys(SEAMS)) as readonly Seam[]
export const HALVES: readonly Half[] = Object.freeze(['before', 'after'] as const)

/** A policy is shown these lists; whoever writes to one gets an error, and the table stays as it is. */
function closed<Table extends Record<string, SeamRow>>(table: Table): Table {
  for (const row of Object.values(table)) for (const part of [row.before, row.after, row]) Object.freeze(part)
  return Object.freeze(table)
}

/** The actions a half admits, in the order of the table; empty where the seam has no such half. */
export const admits = (seam: Seam, half: Half): readonly Action[] => SEAMS[seam][half]
