import type { Span } from './text.ts'

/** Characters that are looked at beyond what leaves: no finding with spaces in it is longer. */
export const LOOK_AHEAD = 512

/** A piece without spaces that is longer is no key, no token and no address, and may be cut. */
const MAX_PIECE = 16_384

/**
 * Up to where a text may leave while more of it is to come: what stands before is not the beginning of anything that is found
 * only with what comes.
 */
export function cutOf(text: string, findings: readonly Span[]): number {
  const most = Math.max(0, text.length - LOOK_AHEAD)
  const space = startOfPiece(text, most)
  const cut = text.length - space > MAX_PIECE ? most : space
  return findings.find(({ start, end }) => start < cut && end > cut)?.start ?? cut
}

function startOfPiece(text: string, at: number): number {
  while (at > 0 && !/\s/.test(text.charAt(at - 1))) at--
  return at
}
