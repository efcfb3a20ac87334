import type { Json, JsonObject } from '@sluice/core'
import { type AskEntry, answeredAsk } from '@sluice/host'
import type { Context } from 'hono'
import { requireAnswerer } from '../guard/answering.ts'
import { maySee, requireScope } from '../guard/may.ts'
import { ownerOf } from '../guard/principal.ts'
import type { Env } from '../http/env.ts'
import { HttpError } from '../http/errors.ts'
import type { Parts } from '../parts.ts'
import type { RunRequest } from '../runs/runs.ts'
import { traceOf } from './runs.ts'

interface Start {
  /** Of the server's own. */
  readonly flow: string
  readonly thread: string | undefined
  readonly inputs: JsonObject
}

/** The run that begins a turn with a flow of the server. @throws HttpError `SCOPE_MISSING`. */
export function startWith(ctx: Context<Env>, { flow, thread, inputs }: Start): RunRequest {
  requireScope(ctx, 'run')
  const by = ctx.get('principal')
  return {
    owner: ownerOf(by),
    by,
    ...(thread === undefined ? {} : { thread }),
    flow: { name: flow },
    begun: { kind: 'start', inputs },
    signal: ctx.req.raw.signal,
    trace: traceOf(ctx),
  }
}

/** What a caller says to a question. */
export interface Answer {
  readonly ask: AskEntry
  readonly value: Json
}

/** A question that the caller may answer, and that is open. @throws HttpError as {@link requireAnswerer}; `ASK_ANSWERED`. */
export async function openAsk(ctx: Context<Env>, { log }: Parts, id: string): Promise<AskEntry> {
  const entry = await log.ask(id)
  if (entry === undefined) throw unknownAsk()
  requireAnswerer(ctx.get('principal'), entry)
  if (entry.closed !== undefined) throw answeredAsk(id)
  return entry
}

/** The same for a chat, which is shown what comes of the answer: who may not see its thread does not find it here. */
export async function openAskOf(ctx: Context<Env>, parts: Parts, thread: string, id: string): Promise<AskEntry> {
  const entry = await openAsk(ctx, parts, id)
  if (!maySee(ctx, entry)) throw unknownAsk()
  if (entry.thread === thread) return entry
  throw new HttpError('REQUEST_INVALID', `question "${id}" is of another thread than "${thread}".`)
}

const unknownAsk = () => new HttpError('ASK_UNKNOWN', 'there is no such question.')

/** The run that goes on with these answers; they are of one line of one thread. @throws HttpError `REQUEST_INVALID`. */
export function resumeWith(ctx: Context<Env>, answers: readonly [Answer, ...Answer[]]): RunRequest {
  const [{ ask: first }] = answers
  const { owner, thread, branch, flow } = first
  if (answers.some(({ ask }) => ask.owner !== owner || ask.thread !== thread || ask.branch !== branch))
    throw new HttpError('REQUEST_INVALID', 'questions that are answered together are of one branch of one thread.')
  const given = Object.fromEntries(answers.map(({ ask, value }) => [ask.ask.key, value])) as JsonObject
  return {
    owner,
    by: ctx.get('principal'),
    thread,
    branch,
    flow,
    begun: { kind: 'resume', answers: given },
    answering: answers.map(({ ask }) => ask.ask.id),
    signal: ctx.req.raw.signal,
    trace: traceOf(ctx),
  }
}
