import { type JsonObject, SluiceError } from '@sluice/core'
import type { ThreadEntry } from '@sluice/host'
import { type Context, Hono } from 'hono'
import { describeRoute } from 'hono-openapi'
import { z } from 'zod'
import { has, maySee, needs, requireTouch } from '../guard/may.ts'
import { ownerOf, type Principal } from '../guard/principal.ts'
import { jsonBody, queryOf } from '../http/body.ts'
import type { Env } from '../http/env.ts'
import { answers } from '../http/openapi.ts'
import { branchName, flowSource } from '../http/schemas.ts'
import { askView, runView } from '../http/view.ts'
import type { Parts } from '../parts.ts'
import { innerName, readThreadName } from '../runs/thread-name.ts'
import { sourceOf } from './runs.ts'

const threadRequest = z
  .strictObject({
    thread: z.string().optional(),
    flow: flowSource.optional(),
    format: z.enum(['json', 'yaml']).optional(),
  })
  .meta({ ref: 'ThreadRequest' })
const threadView = z
  .object({
    thread: z.string(),
    createdAt: z.number(),
    flow: z.string().optional(),
    owner: z.string().optional().meta({ description: 'where it is not you' }),
  })
  .meta({ ref: 'Thread' })
const anything = z.object({}).catchall(z.unknown())
const whose = z.object({
  owner: z.string().optional().meta({ description: 'whose threads; your own without it, where you may see others' }),
})
const place = whose.extend({ branch: branchName.optional(), at: z.coerce.number().int().positive().optional() })
const forkRequest = z.strictObject({
  at: z
    .int()
    .positive()
    .optional()
    .meta({ description: 'the last record that the fork shares; the last one without it' }),
  branch: branchName.optional(),
  name: branchName.optional(),
})
const editRequest = z.strictObject({ values: z.record(z.string(), z.unknown()), branch: branchName.optional() })

/** Begin threads, look at their history and state, fork and change them. A thread belongs to who made it. */
export function threadRoutes(parts: Parts): Hono<Env> {
  const { log, runtime, flows } = parts
  const app = new Hono<Env>()

  /**
   * The thread of this request as the store names it: the caller's own, or of whom `?owner=` says.
   *
   * @throws SluiceError `THREAD_UNKNOWN`; HttpError `SCOPE_MISSING` for one that the caller may see and not change.
   */
  async function found(
    ctx: Context<Env>,
    to: 'see' | 'change' = 'see',
  ): Promise<{ readonly entry: ThreadEntry; readonly inner: string }> {
    const owner = ctx.req.query('owner') ?? ownerOf(ctx.get('principal'))
    const id = ctx.req.param('id') ?? ''
    const entry = maySee(ctx, { owner }) ? await log.thread(owner, id) : undefined
    if (entry === undefined) throw new SluiceError('THREAD_UNKNOWN', 'there is no such thread.')
    if (to === 'change') requireTouch(ctx, entry)
    return { entry, inner: innerName(owner, id) }
  }

  async function graphOf({ flow, id }: ThreadEntry) {
    if (flow === undefined) throw new SluiceError('THREAD_UNKNOWN', `thread "${id}" has run nothing yet.`)
    return (await flows.compiled(flow)).graph
  }

  app.post(
    '/',
    describeRoute({ summary: 'Begin a thread', responses: answers({ 201: ['the thread', threadView] }) }),
    needs('run'),
    jsonBody(threadRequest),
    async (ctx) => {
      const { thread, flow, format } = ctx.req.valid('json')
      const source = flow === undefined ? undefined : sourceOf({ flow, format })
      if (source !== undefined) await flows.compiled(source)
      const id = thread === undefined ? crypto.randomUUID() : readThreadName(thread)
      const principal = ctx.get('principal')
      const owner = ownerOf(principal)
      await log.addThread({ owner, id, at: Date.now(), ...(source === undefined ? {} : { flow: source }) })
      return ctx.json(viewOf((await log.thread(owner, id)) as ThreadEntry, principal), 201, {
        location: `/v1/threads/${id}`,
      })
    },
  )

  app.get(
    '/',
    describeRoute({
      summary: 'Your threads, or everybody’s with the scope "read", the latest first',
      responses: answers({ 200: ['threads', z.object({ threads: z.array(threadView) })] }),
    }),
    queryOf(whose),
    async (ctx) => {
      const principal = ctx.get('principal')
      const { owner = has(principal, 'read') ? undefined : ownerOf(principal) } = ctx.req.valid('query')
      const found = owner === undefined || maySee(ctx, { owner }) ? await log.threads(owner) : []
      return ctx.json({ threads: found.map((entry) => viewOf(entry, principal)) })
    },
  )

  app.get(
    '/:id',
    describeRoute({
      summary: 'Where a thread stands',
      description:
        'With `?at=` its state as of a record of its history. Without its state where its flow came with code that this server does not take.',
      responses: answers({ 200: ['where it stands', anything] }),
    }),
    queryOf(place),
    async (ctx) => {
      const { entry, inner } = await found(ctx)
      const { branch, at } = ctx.req.valid('query')
      const { owner, id: thread } = entry
      const [last] = await log.runs({ owner, thread, limit: 1 })
      if (entry.flow === undefined || last === undefined)
        return ctx.json({ ...viewOf(entry, ctx.get('principal')), runs: [] })
      // Its state is nobody's to read without the code; where it stands can be told all the same.
      const isClosed = at === undefined && flows.refuses(entry.flow)
      const stands = isClosed ? {} : await runtime.current.stateAt(await graphOf(entry), inner, { branch, at })
      const asks = (await log.asks({ owner, thread })).map(askView)
      const branches = (await runtime.current.branches(inner)).map(({ branch: name, head, forkedFrom }) => {
        return { branch: name, head, ...(forkedFrom === undefined ? {} : { forkedFrom }) }
      })
      const runs = (await log.runs({ owner, thread })).map(runView).map(({ run, status }) => ({ run, status }))
      return ctx.json({ ...viewOf(entry, ctx.get('principal')), ...stands, asks, branches, runs } as JsonObject)
    },
  )

  app.get(
    '/:id/history',
    describeRoute({
      summary: 'Every record of a branch, the oldest first',
      responses: answers({ 200: ['records', z.object({ records: z.array(anything) })] }),
    }),
    queryOf(place),
    async (ctx) => {
      const { inner } = await found(ctx)
      const { branch } = ctx.req.valid('query')
      return ctx.json({ records: await runtime.current.history(inner, { branch }) } as unknown as JsonObject)
    },
  )

  app.post(
    '/:id/fork',
    describeRoute({ summary: 'Begin a branch', responses: answers({ 201: ['the branch', anything] }) }),
    needs('edit'),
    jsonBody(forkRequest),
    async (ctx) => {
      const { entry, inner } = await found(ctx, 'change')
      const request = ctx.req.valid('json')
      const { branch } = await runtime.current.fork(inner, request)
      return ctx.json({ thread: entry.id, branch }, 201)
    },
  )

  app.patch(
    '/:id/state',
    describeRoute({ summary: 'Change the state by hand', responses: answers({ 200: ['the record of it', anything] }) }),
    needs('edit'),
    jsonBody(editRequest),
    async (ctx) => {
      const { entry, inner } = await found(ctx, 'change')
      const { values, branch } = ctx.req.valid('json')
      const at = await runtime.current.updateState(await graphOf(entry), inner, values as never, { branch })
      return ctx.json({ thread: entry.id, at })
    },
  )

  app.delete(
    '/:id',
    describeRoute({
      summary: 'Forget a thread with all its branches and runs',
      responses: answers({ 200: ['it is gone', anything] }),
    }),
    needs('edit'),
    async (ctx) => {
      const { entry, inner } = await found(ctx, 'change')
      await runtime.current.store.remove(inner)
      await log.removeThread(entry.owner, entry.id)
      return ctx.json({ thread: entry.id, deleted: true })
    },
  )
  return app
}

const viewOf = ({ owner, id, at, flow }: ThreadEntry, caller: Principal) => ({
  thread: id,
  createdAt: at,
  ...(owner === ownerOf(caller) ? {} : { owner }),
  ...(flow !== undefined && 'name' in flow ? { flow: flow.name } : {}),
})
