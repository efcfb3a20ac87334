import { type Platform, platform } from '../run/platform.ts'

/** What time it is on a platform that stands still: noon of 1 January 2026, UTC. */
const NOON = 1_767_268_800_000

/** A platform for tests: ids count from 1, and the time of day stands still. Timers are real. */
export function still(): Platform {
  let ids = 0
  return { ...platform, uuid: () => `id-${++ids}`, time: () => NOON }
}
