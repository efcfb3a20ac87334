import { Hono } from 'hono'
import { describeRoute } from 'hono-openapi'
import { z } from 'zod'
import { needs } from '../guard/may.ts'
import { codeAllowed, codeIn } from '../guard/request-code.ts'
import { jsonBody } from '../http/body.ts'
import type { Env } from '../http/env.ts'
import { answers } from '../http/openapi.ts'
import { codeFields, flowSource } from '../http/schemas.ts'
import type { Parts } from '../parts.ts'
import { sourceOf } from './runs.ts'

const request = z
  .strictObject({ flow: flowSource, format: z.enum(['json', 'yaml']).optional(), ...codeFields })
  .meta({ ref: 'Document' })
const view = z
  .object({
    valid: z.literal(true),
    flow: z.string(),
    startNode: z.string(),
    nodes: z.array(z.object({ name: z.string(), type: z.string() })),
    inputs: z.array(z.record(z.string(), z.unknown())).meta({ description: 'JSON Schemas, each with a title' }),
    outputs: z.array(z.record(z.string(), z.unknown())),
    warnings: z.array(z.object({ code: z.string(), message: z.string(), path: z.string() })),
  })
  .meta({ ref: 'Valid' })

/** Checks a flow and starts nothing. */
export function validateRoute({ flows }: Parts): Hono<Env> {
  return new Hono<Env>().post(
    '/',
    describeRoute({ summary: 'Check a flow without running it', responses: answers({ 200: ['it can run', view] }) }),
    needs('run'),
    codeAllowed(flows.codeLimits !== undefined),
    jsonBody(request),
    async (ctx) => {
      const { flow: document, format, ...code } = ctx.req.valid('json')
      const { flow } = await flows.compiled(sourceOf({ flow: document, format, code: codeIn(code) }))
      const nodes = flow.nodes.map(({ name, type }) => ({ name, type }))
      const startNode = nodes.find(({ type }) => type === 'StartNode')?.name ?? ''
      const warnings = flow.warnings.map(({ code, message, path }) => ({ code, message, path }))
      const [inputs, outputs] = [flow.inputs, flow.outputs].map((ports) => ports.map(({ schema }) => schema))
      return ctx.json({ valid: true as const, flow: flow.name, startNode, nodes, inputs, outputs, warnings })
    },
  )
}
