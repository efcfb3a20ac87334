import { isObject, MAX_DEPTH } from '@sluice/core'
import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { Env } from '../http/env.ts'
import { HttpError } from '../http/errors.ts'

const WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE']
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json *(?:;|$)/i

/**
 * Reads a body within its limits, before any route sees it: so many bytes, JSON, so deep, and no key that reaches into what objects
 * inherit.
 *
 * @throws HttpError `REQUEST_TOO_LARGE`, `REQUEST_TYPE`, `REQUEST_JSON`, `REQUEST_CUT`.
 */
export const jsonBodies = (maxBytes: number) =>
  createMiddleware<Env>(async (ctx, next) => {
    if (!WITH_BODY.includes(ctx.req.method)) return next()
    const text = await textOf(ctx, maxBytes)
    // What is kept there is a promise, whatever its type says.
    if (text !== '') ctx.req.bodyCache.json = Promise.resolve(checked(ctx, text)) as never
    return next()
  })

async function textOf(ctx: Context, maxBytes: number): Promise<string> {
  const told = ctx.req.header('content-length')
  if (Number(told ?? 0) > maxBytes) throw tooLarge(maxBytes)
  try {
    if (told === undefined) ctx.req.bodyCache.text = counted(ctx.req.raw.body, maxBytes) as never
    const text = await ctx.req.text()
    if (Buffer.byteLength(text) > maxBytes) throw tooLarge(maxBytes)
    return text
  } catch (cause) {
    // Who stops in the middle of a body is told so, if anybody is there; it is no fault of ours.
    throw cause instanceof HttpError ? cause : new HttpError('REQUEST_CUT', 'the body ended before it was whole.')
  }
}

/** A body that does not say how long it is, as far as it may go. */
async function counted(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<string> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of body ?? []) {
    bytes += part.length
    if (bytes > maxBytes) throw tooLarge(maxBytes)
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

const tooLarge = (maxBytes: number) =>
  new HttpError('REQUEST_TOO_LARGE', `a request's body may have ${maxBytes} bytes.`)

/** The value of a JSON text that holds nothing strange. */
function checked(ctx: Context, text: string): unknown {
  const type = ctx.req.header('content-type')
  if (type === undefined || !JSON_TYPE.test(type))
    throw new HttpError('REQUEST_TYPE', 'a body is JSON: send "content-type: application/json" with it.')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new HttpError('REQUEST_JSON', 'the body is not JSON.')
  }
  refuseStrange(value, 0)
  return value
}

function refuseStrange(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return
  if (depth >= MAX_DEPTH) throw new HttpError('REQUEST_JSON', `the body is nested deeper than ${MAX_DEPTH} levels.`)
  for (const [key, member] of Object.entries(value)) {
    if (key === '__proto__' || (key === 'constructor' && isObject(member) && Object.hasOwn(member, 'prototype')))
      throw new HttpError('REQUEST_JSON', `the body has a key "${key}", which nothing here takes.`)
    refuseStrange(member, depth + 1)
  }
}
