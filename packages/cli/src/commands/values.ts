import { InvalidArgumentError } from 'commander'

/** The values of a flag that may be repeated, in their order. */
export const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]

export function whole(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= 1) return value
  throw new InvalidArgumentError('give a whole number of 1 or more.')
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `30d` and the like, in milliseconds. */
export function span(text: string): number {
  const [, count, unit = ''] = /^(\d+)([smhd])$/.exec(text) ?? []
  if (count !== undefined) return Number(count) * (UNIT_MS[unit] as number)
  throw new InvalidArgumentError('give a number and a unit, such as 90s, 30m, 12h or 30d.')
}
