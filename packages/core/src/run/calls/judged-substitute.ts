import type { ChatResponse } from '../../chat/chat.ts'
import { messageOf } from '../../errors/error.ts'
import { BlockGates, type StreamBlocks } from '../../seams/blocks.ts'
import type { Call } from '../../seams/call.ts'
import { Replacement, Said } from '../../seams/hooks.ts'
import { LAYER, type Layer, type OwnMiddleware } from '../../seams/own.ts'

/**
 * Layers around all others for who judges responses block by block: one that somebody supplied came from no model, and so past
 * no judge. It is judged once, after every `afterModel` and before the policies.
 */
export const substituteJudges = (own: readonly OwnMiddleware[]): readonly OwnMiddleware[] =>
  own.flatMap(({ name, stream }) => (typeof stream === 'object' ? [judgeOf(name, stream)] : [])).reverse()

function judgeOf(name: string, judge: StreamBlocks): OwnMiddleware {
  const run = (call: Call, { value }: { readonly value: unknown }) =>
    call.substituted === undefined ? undefined : judged(judge, value as ChatResponse)
  const judging: OwnMiddleware = {
    name,
    [LAYER]: (seam) => (seam === 'modelCall' ? layer : undefined),
  }
  const layer: Layer = { middleware: judging, after: { name: 'afterModel', run } }
  return judging
}

async function judged(judge: StreamBlocks, response: ChatResponse): Promise<Said | undefined> {
  const gates = new BlockGates([judge], () => undefined)
  try {
    await gates.add(response.content)
    await gates.end()
  } catch (error) {
    return new Said('fail', messageOf(error))
  }
  return gates.text === response.content ? undefined : new Replacement({ ...response, content: gates.text })
}
