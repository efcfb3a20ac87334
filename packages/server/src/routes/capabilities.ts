import { type Policy, SEAM_NAMES } from '@sluice/core'
import { Hono } from 'hono'
import { describeRoute } from 'hono-openapi'
import { z } from 'zod'
import type { Env } from '../http/env.ts'
import { answers } from '../http/openapi.ts'
import type { Parts } from '../parts.ts'
import { protocolNames } from '../protocols/protocols.ts'

const view = z.object({ version: z.string() }).catchall(z.unknown()).meta({ ref: 'Capabilities' })

/** What this server is and has. */
export function capabilityRoute({ version, runtime, flows, runs }: Parts): Hono<Env> {
  return new Hono<Env>().get(
    '/',
    describeRoute({ summary: 'What this server has', responses: answers({ 200: ['all of it', view] }) }),
    (ctx) => {
      const { gates, limits } = runtime.current
      return ctx.json({
        version,
        flows: flows.names,
        tools: runtime.host.tools.map(({ name, source }) => ({ name, source })),
        formats: ['json', 'yaml'],
        protocols: protocolNames({ runtime }),
        middleware: gates.policies.map((policy) => viewOf(policy)),
        allowRequestCode: flows.codeLimits !== undefined,
        limits: { ...limits, ...codeLimitsOf(flows) },
        runs: { underWay: runs.underWay },
      })
    },
  )
}

function codeLimitsOf({ codeLimits }: Parts['flows']) {
  if (codeLimits === undefined) return {}
  const { maxTools, maxPlugins, maxFiles, maxBytes } = codeLimits
  return {
    maxRequestTools: maxTools,
    maxRequestPlugins: maxPlugins,
    maxRequestFiles: maxFiles,
    maxRequestCodeBytes: maxBytes,
  }
}

/** A caller cannot choose a policy, and may have a call refused by one. */
function viewOf(policy: Policy) {
  const { name, plugin, mode = 'enforce', kept } = policy
  const seams = SEAM_NAMES.flatMap((seam) => {
    const halves = (['before', 'after'] as const).filter((half) => policy.subscribes(seam, half))
    return halves.length === 0 ? [] : [[seam, halves] as const]
  })
  return { name, plugin, mode, seams: Object.fromEntries(seams), ...(kept && { keeps: kept.scope }) }
}
