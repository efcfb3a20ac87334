import type { ClientProtocol } from '../protocol.ts'
import { agUiRendering } from './rendering.ts'

/** AG-UI 1.0, of a run that was begun by a request of ours. */
export const agUi: ClientProtocol = {
  name: 'ag-ui',
  leavingCancels: true,
  start: async ({ id, thread, flow }, { flows }) =>
    agUiRendering({ run: id, threadId: thread, runId: id, flow: (await flows.compiled(flow)).flow }),
}
