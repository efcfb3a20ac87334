import { SEAMS } from '@sluice/core'
import { PROTOCOL } from '@sluice/plugin/wire'

const seams = Object.fromEntries(Object.entries(SEAMS).map(([seam, { before, after }]) => [seam, { before, after }]))

/** The params of `init`: the version, what this plugin may ask for, and the verdicts that each half admits. */
export const initParams = (capabilities: readonly string[]): string =>
  JSON.stringify({ protocol: PROTOCOL, capabilities, seams })

/** The version that an answer to `init` names, when it is another one; whoever does not name a version speaks this one. */
export function otherProtocol(result: unknown): number | undefined {
  const protocol = (result as { protocol?: unknown } | null)?.protocol
  return Number.isInteger(protocol) && protocol !== PROTOCOL ? (protocol as number) : undefined
}
