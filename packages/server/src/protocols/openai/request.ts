import { z } from 'zod'
import { HttpError } from '../../http/errors.ts'

const message = z.looseObject({ role: z.string(), content: z.unknown().optional() })

/** What a client of OpenAI's chat completions sends. Settings of a model are the flow's, and are let be. */
export const completionRequest = z
  .looseObject({
    model: z.string().meta({ description: 'a flow of the server, by its name' }),
    messages: z.array(message).min(1),
    stream: z.boolean().nullish(),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
    sluice: z
      .strictObject({
        inputs: z.record(z.string(), z.unknown()).optional(),
        thread: z.string().optional(),
      })
      .optional()
      .meta({ description: 'inputs of the flow by name, which come before all else, and the thread to go on with' }),
  })
  .meta({ ref: 'ChatCompletionRequest' })

export type CompletionRequest = z.infer<typeof completionRequest>

/** What would change the answer, and cannot be had of a flow. */
const CANNOT: Readonly<Record<string, (value: unknown) => boolean>> = {
  tools: (value) => Array.isArray(value) && value.length > 0,
  functions: (value) => Array.isArray(value) && value.length > 0,
  n: (value) => value !== 1,
  response_format: (value) => (value as { type?: unknown }).type !== 'text',
  logprobs: (value) => value !== false,
  audio: () => true,
}

/** @throws HttpError `REQUEST_INVALID` for what a client relies on and a flow does not do. */
export function refuseUnsupported(request: CompletionRequest): void {
  const asked = Object.keys(CANNOT).filter((field) => {
    const value = request[field]
    return value !== undefined && value !== null && CANNOT[field]?.(value)
  })
  if (asked.length === 0) return
  throw new HttpError('REQUEST_INVALID', `a flow is no bare model, and takes no: ${asked.join(', ')}. Leave it out.`)
}
