import { frameText } from '../http/sse.ts'
import type { ClientProtocol } from './protocol.ts'

/** Events as they are, each with its number, so that a client that was cut off comes back where it was. */
export const own: ClientProtocol = {
  name: 'sluice',
  leavingCancels: false,
  start: () => ({
    event: (event, seq) => [frameText({ event: event.type, id: String(seq), data: JSON.stringify(event) })],
  }),
}
