import { SluiceError } from '@sluice/core'
import { FlowError, showFault } from '@sluice/flow'
import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { OnFault } from '../parts.ts'
import { isOpenAiPath, openAiError } from './openai-error.ts'

/** The one shape of every error that this server answers with. */
export interface ErrorBody {
  readonly error: {
    readonly code: string
    readonly message: string
    /** Of a document: every fault, with its place. */
    readonly faults?: readonly { readonly code: string; readonly message: string; readonly path?: string }[]
    /** Which goes on, where an answer could not wait for it. */
    readonly run?: string
  }
  /** Names the request in the server's own log. */
  readonly request: string
}

/** What a caller can mend. Any other code is ours, and is told without its message. */
const STATUS: Readonly<Record<string, ContentfulStatusCode>> = {
  REQUEST_INVALID: 400,
  REQUEST_CODE: 400,
  CODE_INVALID: 400,
  CODE_TAKEN: 400,
  REQUEST_JSON: 400,
  REQUEST_CUT: 400,
  REQUEST_PROTOCOL: 400,
  CALLER_UNKNOWN: 401,
  SCOPE_MISSING: 403,
  ANSWER_FORBIDDEN: 403,
  HOST_UNKNOWN: 403,
  ROUTE_UNKNOWN: 404,
  METHOD_UNKNOWN: 405,
  REQUEST_TOO_LARGE: 413,
  REQUEST_TYPE: 415,
  TOO_MANY_REQUESTS: 429,
  TOO_MANY_RUNS: 429,
  SERVER_DRAINING: 503,
  RUN_UNKNOWN: 404,
  THREAD_UNKNOWN: 404,
  ASK_UNKNOWN: 404,
  FLOW_UNKNOWN: 404,
  HISTORY_UNKNOWN: 404,
  ASK_ANSWERED: 409,
  FORK_ANSWERED: 409,
  ASK_EXPIRED: 409,
  ASKER_MISSING: 409,
  BRANCH_EXISTS: 409,
  THREAD_BUSY: 409,
  THREAD_PAUSED: 409,
  THREAD_NOT_PAUSED: 409,
  THREAD_FINISHED: 409,
  THREAD_UNFINISHED: 409,
  THREAD_STUCK: 409,
  THREAD_OF_OTHER_GRAPH: 409,
  THREAD_NODE_GONE: 409,
  UPDATE_CONFLICT: 409,
  ANSWER_INVALID: 422,
  ANSWER_AMBIGUOUS: 422,
  STATE_UPDATE: 422,
  STATE_INPUT: 422,
  THREAD_NAME: 400,
  JSON_VALUE: 400,
  FLOW_INPUT: 422,
  LIMIT_INVALID: 400,
  MODEL_ADDRESS: 400,
  MODEL_CONFIG: 400,
  PLUGIN_PROTOCOL_UNKNOWN: 400,
  JSON_SCHEMA: 400,
}

/** How a run that did not complete is answered where its caller waits for it: what a policy refused is nobody's fault of these. */
const RUN_STATUS: Readonly<Record<string, ContentfulStatusCode>> = {
  REFUSED: 403,
  FAILED_BY_MIDDLEWARE: 403,
  RUN_CANCELLED: 409,
  ROUNDS_SPENT: 422,
  MAX_ITERATIONS: 422,
  MAX_TASKS: 422,
  TOOL_ARGUMENTS: 422,
  RUN_DRAINED: 503,
  RUN_TIMED_OUT: 504,
  NODE_TIMED_OUT: 504,
  TOOL_TIMED_OUT: 504,
  TOOL_FAILED: 502,
  MODEL_HTTP: 502,
  MODEL_UNREACHABLE: 502,
  MODELS_FAILED: 502,
}

function statusOf(code: string | undefined): ContentfulStatusCode {
  if (code === undefined) return 500
  return STATUS[code] ?? (code.startsWith('FLOW_') ? 400 : 500)
}

export const runStatusOf = (code: string | undefined): ContentfulStatusCode =>
  (code === undefined ? undefined : RUN_STATUS[code]) ?? statusOf(code)

/** Who is told what was answered. */
interface Told {
  /** What is ours, whole; the caller is not. */
  onFault: OnFault
  /** The code of a request that was not let in: who did not say who they are, asked too much or too often. */
  onRefused(code: string): void
}

const REFUSALS: ReadonlySet<number> = new Set([401, 403, 408, 413, 429, 503])

export function answerError(error: unknown, ctx: Context, { onFault, onRefused }: Told): Response {
  const request = (ctx.get('requestId') as string | undefined) ?? ''
  const { status, body, headers } = shown(error)
  if (status === 500) onFault(error, `request ${request}`)
  if (REFUSALS.has(status)) onRefused(body.code)
  const answer: ErrorBody = { error: body, request }
  return ctx.json(isOpenAiPath(ctx.req.path) ? openAiError(status, body) : answer, status, headers)
}

interface Shown {
  readonly status: ContentfulStatusCode
  readonly body: ErrorBody['error']
  readonly headers?: Record<string, string>
}

const OURS: Shown = {
  status: 500,
  body: {
    code: 'SERVER_FAULT',
    message: 'the server could not do this. Its own log says why, under the id of this request.',
  },
}

function shown(error: unknown): Shown {
  if (error instanceof FlowError && error.at.file === undefined)
    return { status: 400, body: { code: error.code, message: error.message, faults: faultsOf(error) } }
  if (error instanceof HttpError)
    return { status: statusOf(error.code), body: { code: error.code, message: error.message }, headers: error.headers }
  if (error instanceof SluiceError) {
    if (error.code === 'SERVER_DRAINING') return draining(error)
    const status = statusOf(error.code)
    return status === 500 ? OURS : { status, body: { code: error.code, message: error.message } }
  }
  if (error instanceof HTTPException && error.status < 500)
    return { status: error.status as ContentfulStatusCode, body: { code: 'REQUEST_INVALID', message: error.message } }
  return OURS
}

/** Until another process is there, in seconds. */
const COME_BACK = '5'

const draining = ({ code, message, at: { run } }: SluiceError): Shown => ({
  status: 503,
  body: { code, message, ...(run === undefined ? {} : { run }) },
  headers: { 'retry-after': COME_BACK, ...(run === undefined ? {} : { location: `/v1/runs/${run}` }) },
})

const faultsOf = (error: FlowError) =>
  error.faults.map((fault) => ({ code: fault.code, message: showFault(fault), path: fault.path }))

/** What is wrong with a request, with headers that say more about it. */
export class HttpError extends SluiceError {
  readonly headers: Record<string, string>

  constructor(code: string, message: string, headers: Record<string, string> = {}) {
    super(code, message)
    this.headers = headers
  }
}
