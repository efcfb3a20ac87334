import type { Begun, FlowSource, RequestCode, RunEntry } from '@sluice/host'
import { type Context, Hono } from 'hono'
import { describeRoute } from 'hono-openapi'
import type { z } from 'zod'
import { maySee, needs, requireTouch } from '../guard/may.ts'
import { ownerOf } from '../guard/principal.ts'
import { codeAllowed, codeIn } from '../guard/request-code.ts'
import { jsonBody } from '../http/body.ts'
import type { Env } from '../http/env.ts'
import { HttpError, runStatusOf } from '../http/errors.ts'
import { answers } from '../http/openapi.ts'
import { runRequest, runView as runSchema } from '../http/schemas.ts'
import { runView } from '../http/view.ts'
import type { Parts } from '../parts.ts'
import { eventStream } from '../protocols/stream.ts'
import { readThreadName } from '../runs/thread-name.ts'

/** Begin runs, look at them, follow and cancel them. */
export function runRoutes(parts: Parts): Hono<Env> {
  const { runs, log, flows } = parts
  const app = new Hono<Env>()

  app.post(
    '/',
    describeRoute({
      summary: 'Run a flow',
      description:
        'Waits for the end of the run; with `accept: text/event-stream` it streams what happens, and with `prefer: respond-async` it answers at once.',
      responses: answers({
        200: ['it completed', runSchema],
        202: ['it waits for an answer, or is under way', runSchema],
      }),
    }),
    needs('run'),
    codeAllowed(flows.codeLimits !== undefined),
    jsonBody(runRequest),
    async (ctx) => {
      const { tools, plugins, files, ...request } = ctx.req.valid('json')
      const code = codeIn({ tools, plugins, files })
      const principal = ctx.get('principal')
      const owner = ownerOf(principal)
      const thread = request.thread === undefined ? undefined : readThreadName(request.thread)
      const flow =
        request.flow === undefined ? await flowOf(parts, owner, thread, code) : sourceOf({ ...request, code })
      const protocol = ctx.req.query('protocol')
      const { signal } = ctx.req.raw
      const begin = () =>
        runs.begin({
          ...request,
          owner,
          by: principal,
          thread,
          flow,
          begun: begunBy(request),
          signal,
          trace: traceOf(ctx),
        })
      return answerRun(ctx, parts, begin, protocol)
    },
  )

  app.get(
    '/:id',
    describeRoute({ summary: 'How a run stands, or ended', responses: answers({ 200: ['the run', runSchema] }) }),
    async (ctx) => ctx.json(runView(await found(ctx, parts))),
  )

  app.get(
    '/:id/events',
    describeRoute({
      summary: 'Follow a run',
      description: 'Its events from the first one, or from the one after `last-event-id`, until it ends.',
      responses: answers({}),
    }),
    async (ctx) => {
      const { id } = await found(ctx, parts)
      return eventStream(parts, id, { after: lastSeen(ctx), protocol: ctx.req.query('protocol') })
    },
  )

  app.post(
    '/:id/cancel',
    describeRoute({ summary: 'Cancel a run', responses: answers({ 202: ['it is about to end', runSchema] }) }),
    needs('run'),
    async (ctx) => {
      const entry = await found(ctx, parts)
      requireTouch(ctx, entry)
      await runs.cancel(entry.id)
      return ctx.json(runView((await log.run(entry.id)) ?? entry), 202)
    },
  )
  return app
}

/** The trace that a request says it belongs to. */
export function traceOf(ctx: Context<Env>): Readonly<Record<string, string>> {
  const headers = ['traceparent', 'tracestate'].map((name) => [name, ctx.req.header(name)] as const)
  return Object.fromEntries(headers.filter((pair): pair is [string, string] => pair[1] !== undefined))
}

/** Answers a request that begins a run in the way it asks for. */
export async function answerRun(
  ctx: Context<Env>,
  parts: Parts,
  begin: () => Promise<RunEntry>,
  protocol: string | undefined,
): Promise<Response> {
  if (wantsStream(ctx)) return eventStream(parts, begin, { after: 0, protocol })
  if (protocol !== undefined)
    throw new HttpError('REQUEST_PROTOCOL', 'a protocol renders a stream; send "accept: text/event-stream" with it.')
  const entry = await begin()
  const location = `/v1/runs/${entry.id}`
  if (/\brespond-async\b/.test(ctx.req.header('prefer') ?? '')) return ctx.json(runView(entry), 202, { location })
  return ctx.json(...answerOf(await endOf(ctx, parts, entry.id)), { location })
}

/** Waits for a run, which ends with whoever waits for it here. */
export async function endOf(ctx: Context<Env>, { runs }: Parts, id: string): ReturnType<Parts['runs']['ended']> {
  const { signal } = ctx.req.raw
  const leave = () => runs.left(id)
  if (signal.aborted) leave()
  signal.addEventListener('abort', leave)
  const ended = await runs.ended(id, signal)
  signal.removeEventListener('abort', leave)
  return ended
}

function answerOf(entry: Awaited<ReturnType<Parts['runs']['ended']>>) {
  const view = runView(entry)
  const { status, error } = entry.ending
  if (status === 'completed') return [view, 200] as const
  return status === 'paused' ? ([view, 202] as const) : ([view, runStatusOf(error?.code)] as const)
}

const wantsStream = (ctx: Context<Env>): boolean =>
  (ctx.req.header('accept') ?? '').includes('text/event-stream') || ctx.req.query('stream') === 'true'

/** @throws HttpError `REQUEST_INVALID` for what is no number of an event. */
function lastSeen(ctx: Context<Env>): number {
  const text = ctx.req.header('last-event-id') ?? ctx.req.query('after') ?? '0'
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new HttpError('REQUEST_INVALID', 'last-event-id is the id of an event: a whole number.')
}

/** A run that the caller may see. @throws HttpError `RUN_UNKNOWN`. */
async function found(ctx: Context<Env>, { log }: Parts): Promise<RunEntry> {
  const id = ctx.req.param('id') ?? ''
  const entry = await log.run(id)
  if (entry !== undefined && maySee(ctx, entry)) return entry
  throw new HttpError('RUN_UNKNOWN', 'there is no such run, or it is forgotten by now.')
}

type Request = z.infer<typeof runRequest>

interface FlowOfRequest extends Pick<Request, 'flow' | 'format'> {
  readonly code?: RequestCode | undefined
}

/** @throws HttpError `REQUEST_INVALID`. */
export function sourceOf({ flow, format, code }: FlowOfRequest): FlowSource {
  const withCode = code === undefined ? {} : { code }
  if (typeof flow !== 'string') return { document: JSON.stringify(flow), format: 'json', ...withCode }
  const isText = flow.includes('\n') || flow.trimStart().startsWith('{')
  if (isText) return { document: flow, ...(format === undefined ? {} : { format }), ...withCode }
  if (code !== undefined)
    throw new HttpError(
      'REQUEST_INVALID',
      'code comes with a document, and this flow is named: it is the server’s own.',
    )
  if (format === undefined) return { name: flow }
  throw new HttpError('REQUEST_INVALID', '"format" says how the text of a flow is written, and this flow is named.')
}

/** @throws HttpError `REQUEST_INVALID`, `THREAD_UNKNOWN`. */
async function flowOf(
  { log }: Parts,
  owner: string,
  thread: string | undefined,
  code: RequestCode | undefined,
): Promise<FlowSource> {
  if (code !== undefined)
    throw new HttpError(
      'REQUEST_INVALID',
      'code comes with a document: give "flow" with it. A thread keeps what its last run brought.',
    )
  const known = thread === undefined ? undefined : await log.thread(owner, thread)
  if (known?.flow !== undefined) return known.flow
  throw new HttpError(
    'REQUEST_INVALID',
    'the body: give "flow", a name or a document; only a thread that has run knows its own.',
  )
}

function begunBy({ inputs, continue: goOn, thread }: Pick<Request, 'inputs' | 'continue' | 'thread'>): Begun {
  if (goOn === undefined)
    return { kind: 'start', inputs: (inputs ?? {}) as Extract<Begun, { kind: 'start' }>['inputs'] }
  if (inputs !== undefined || thread === undefined)
    throw new HttpError('REQUEST_INVALID', '"continue" goes on with a "thread", and takes no "inputs".')
  return { kind: 'continue' }
}
