import type { Principal } from '../guard/principal.ts'

/** What a request carries through this server. */
export interface Env {
  Variables: { principal: Principal; requestId: string }
}
