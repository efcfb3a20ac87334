import type { ClientProtocol } from '../protocol.ts'
import { aiSdkRendering } from './rendering.ts'

/** The AI SDK's UI message stream, of a run that was begun by a request of ours. */
export const aiSdk: ClientProtocol = {
  name: 'ai-sdk',
  headers: { 'x-vercel-ai-ui-message-stream': 'v1' },
  leavingCancels: true,
  start: async ({ id, thread, flow }, { flows }) =>
    aiSdkRendering({ run: id, thread, flow: (await flows.compiled(flow)).flow }),
}
