import { findEmails } from './email.ts'
import { findIbans } from './iban.ts'
import { findIps } from './ip.ts'
import { findKeys } from './key.ts'
import { findCards, findPhones } from './numbers.ts'
import type { Span, Text } from './text.ts'

/** What is found without a detector of your own. */
export type PiiKind = 'key' | 'iban' | 'card' | 'email' | 'ip' | 'phone'

/** Finds one kind of thing in a text. It is given every text, so it must take time that is linear in its length. */
export interface PiiDetector {
  /** Lower-case letters, digits, `_` and `-`; it stands in what replaces a finding, and names the kind in `strategy`. */
  readonly name: string
  /** Where they stand: whole numbers, `0 <= start < end <= text.length`, in any order; they may overlap. */
  find(text: string): Iterable<Span>
}

/** The built-in detectors; where two find the same place, the one that is first here names it. */
export const FINDERS: Readonly<Record<PiiKind, (text: Text) => readonly Span[]>> = {
  key: findKeys,
  iban: findIbans,
  card: findCards,
  email: findEmails,
  ip: findIps,
  phone: findPhones,
}

export const PII_KINDS = Object.freeze(Object.keys(FINDERS)) as readonly PiiKind[]

/** A place in a text and what stands there. */
export interface Finding extends Span {
  readonly kind: string
}

/** What the detectors find, from left to right. Where findings overlap they are one, of the kind of the detector listed first. */
export function findAll(detectors: readonly PiiDetector[], text: string): readonly Finding[] {
  const ranked = detectors
    .flatMap((detector, rank) => [...spansOf(detector, text)].map((span) => ({ ...span, kind: detector.name, rank })))
    .sort((a, b) => a.start - b.start)
  const merged: { start: number; end: number; kind: string; rank: number }[] = []
  for (const found of ranked) {
    const last = merged.at(-1)
    if (last === undefined || found.start >= last.end) merged.push({ ...found })
    else {
      if (found.rank < last.rank) Object.assign(last, { kind: found.kind, rank: found.rank })
      last.end = Math.max(last.end, found.end)
    }
  }
  return merged
}

function* spansOf(detector: PiiDetector, text: string): Generator<Span> {
  const { name } = detector
  for (const { start, end } of detector.find(text)) {
    if (!Number.isInteger(start) || !Number.isInteger(end) || start < 0 || start >= end || end > text.length) {
      throw new RangeError(
        `detector "${name}" found ${start} to ${end} in a text of ${text.length} characters; spans are whole numbers with 0 <= start < end <= length.`,
      )
    }
    yield { start, end }
  }
}
