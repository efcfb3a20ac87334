import type { Locate } from '../faults/report.ts'

/** What a text says, and how to find a part of it again. */
export interface Reading {
  /** Plain objects, lists and scalars. YAML aliases are one object that stands at several places. */
  readonly value: unknown
  readonly locate: Locate
}
