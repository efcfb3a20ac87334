import { z } from 'zod'
import { NAME } from '../runs/thread-name.ts'

const json = z.unknown().meta({ description: 'any JSON value' })
const object = z.record(z.string(), z.unknown())

export const errorBody = z
  .object({
    error: z.object({
      code: z.string().meta({ description: 'stable; match this, never the text' }),
      message: z.string(),
      faults: z
        .array(z.object({ code: z.string(), message: z.string(), path: z.string().optional() }))
        .optional()
        .meta({ description: 'of a document: every fault' }),
      run: z.string().optional().meta({ description: 'goes on, where an answer could not wait for it' }),
    }),
    request: z.string().meta({ description: 'names the request in the log of the server' }),
  })
  .meta({ ref: 'Error' })

/** A flow as a request names it. */
export const flowSource = z
  .union([z.string(), object])
  .meta({ description: 'the name of a flow of the server, an Agent Spec document as an object, or its text' })

const text = z.string()

/** Code that a flow runs with; it comes with a document, never with the name of a flow. */
export const codeFields = {
  tools: z
    .array(z.strictObject({ name: text, source: text, interpreter: text.optional() }))
    .optional()
    .meta({ description: 'programs for this run; only where the operator allows it, as are plugins and files' }),
  plugins: z.array(z.strictObject({ name: text, manifest: object, source: text })).optional(),
  files: z.array(z.strictObject({ path: text, content: text })).optional(),
}

/** Named like a thread. */
export const branchName = z
  .string()
  .regex(NAME, 'up to 128 letters, digits, ".", "_", ":" and "-", a letter or a digit first')

export const runRequest = z
  .strictObject({
    flow: flowSource.optional(),
    format: z.enum(['json', 'yaml']).optional().meta({ description: 'of a flow that is text' }),
    ...codeFields,
    inputs: object.optional(),
    thread: z.string().optional().meta({ description: 'goes on with this thread, and begins it if need be' }),
    branch: branchName.optional(),
    continue: z
      .literal(true)
      .optional()
      .meta({ description: 'goes on with a thread that failed or was cut off, in place of inputs' }),
    timeoutMs: z.int().positive().optional().meta({ description: 'at most what the server allows' }),
  })
  .meta({ ref: 'RunRequest' })

export const askView = z
  .object({
    id: z.string(),
    run: z.string(),
    thread: z.string(),
    branch: z.string().optional(),
    key: z.string(),
    askedBy: z.string(),
    nodeName: z.string(),
    payload: json,
    schema: object.optional(),
    askedAt: z.number(),
    expiresAt: z.number().optional(),
    approvers: z.string().optional().meta({ description: 'who may answer, as CEL over the principal' }),
    toolCallId: z.string().optional().meta({ description: 'the call of a tool that it is about' }),
  })
  .meta({ ref: 'Ask' })

export const runView = z
  .object({
    run: z.string(),
    thread: z.string(),
    branch: z.string().optional(),
    status: z.enum(['running', 'completed', 'paused', 'failed', 'cancelled']),
    result: json.optional(),
    error: z.object({ name: z.string(), message: z.string(), code: z.string().optional() }).optional(),
    asks: z.array(askView).optional(),
    warnings: z.array(object).optional(),
    decisions: z.array(object).optional(),
  })
  .meta({ ref: 'Run' })
