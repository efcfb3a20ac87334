import { FAULT } from '../wire/frames.ts'
import type { Context } from './context.ts'
import { WireFault } from './fault.ts'

type Part = { readonly [name: string]: unknown }
type Handler = (first: unknown, ctx: Context) => unknown

/** What a program serves, as it was handed to `serve`. */
export interface Served {
  readonly handlers: Part
  readonly tools: Part
  readonly listTools?: (() => unknown) | undefined
}

/** Calls the handler that a work request asks for. */
export function invoke({ handlers, tools, listTools }: Served, method: string, params: Part, ctx: Context): unknown {
  const { componentType: type, subject, input, outcome } = params
  switch (method) {
    case 'before':
      return callSeam(handlers, params, 'before', { subject, input }, ctx)
    case 'after':
      return callSeam(
        handlers,
        params,
        'after',
        input === undefined ? { subject, outcome } : { subject, outcome, input },
        ctx,
      )
    case 'execute':
      return settle(call(handlers, type, 'execute(input, ctx)', input, ctx), outputWith('branch'))
    case 'apply':
      return call(handlers, type, 'apply(messages, ctx)', params.messages, ctx)
    case 'chat':
      return call(handlers, type, 'chat(request, ctx)', params.request, ctx)
    case 'encode':
      return call(handlers, type, 'encode(event, ctx)', params.event, ctx)
    case 'finishEncode':
      return finish(handlers, type, ctx)
    case 'listTools':
      if (listTools !== undefined) return listTools()
      throw missing('discoverTools', 'serve({ … }, { listTools() { … }, tools: { … } })')
    case 'selfTest':
      return selfTest(handlers, params, ctx)
    case 'callTool':
      return settle(callTool(tools, params.tool, input, ctx), outputWith('stderr'))
    default:
      throw new WireFault(FAULT.noMethod, `"${method}" is no method of this protocol`)
  }
}

/** Looks whether there is a handler for whatever the manifest declares, and lets the component test itself. */
function selfTest(handlers: Part, params: Part, ctx: Context): unknown {
  const { componentType: type, kind, seams = {} } = params
  const component = member(handlers, type)
  for (const [seam, halves] of Object.entries(seams as { readonly [seam: string]: readonly string[] }))
    for (const half of halves) handlerOf(handlers, type, seam, half)
  const work = WORK[kind as string]
  if (work !== undefined) workOf(component, type, work)
  const test = member(component, 'selfTest')
  if (typeof test !== 'function') return true
  return settle(test.call(component, ctx), (passed) => {
    if (passed === undefined || passed === null || passed === true) return true
    throw new Error(
      `the selfTest of ${type} returned ${JSON.stringify(passed)}; throw what is wrong, or return nothing`,
    )
  })
}

/** What a component of a kind does. */
const WORK: { readonly [kind: string]: string } = {
  node: 'execute(input, ctx)',
  transform: 'apply(messages, ctx)',
  provider: 'chat(request, ctx)',
  encoder: 'encode(event, ctx)',
}

function callSeam(handlers: Part, params: Part, half: string, shown: object, ctx: Context): unknown {
  const { componentType: type, seam } = params
  const halves = member(member(handlers, type), seam)
  return handlerOf(handlers, type, seam as string, half).call(halves, shown, ctx)
}

function handlerOf(handlers: Part, type: unknown, seam: string, half: string): Handler {
  const handler = member(member(member(handlers, type), seam), half)
  if (typeof handler === 'function') return handler as Handler
  const given = half === 'before' ? 'input' : 'outcome'
  throw missing(
    `${seam}.${half} of ${type}`,
    `serve({ ${type}: { ${seam}: { ${half}({ subject, ${given} }, ctx) { … } } } })`,
  )
}

function call(handlers: Part, type: unknown, signature: string, first: unknown, ctx: Context): unknown {
  const component = member(handlers, type)
  return workOf(component, type, signature).call(component, first, ctx)
}

function workOf(component: unknown, type: unknown, signature: string): Handler {
  const handler = member(component, signature.slice(0, signature.indexOf('(')))
  if (typeof handler === 'function') return handler as Handler
  throw missing(String(type), `serve({ ${type}: { ${signature} { … } } })`)
}

/** An encoder that holds nothing back has nothing to finish. */
function finish(handlers: Part, type: unknown, ctx: Context): unknown {
  const component = member(handlers, type)
  const handler = member(component, 'finish')
  return typeof handler === 'function' ? handler.call(component, ctx) : []
}

function callTool(tools: Part, name: unknown, input: unknown, ctx: Context): unknown {
  const run = member(tools, name)
  if (typeof run === 'function') return run.call(tools, input, ctx)
  throw missing(`tool "${name}"`, `serve({ … }, { tools: { ${name}(input, ctx) { … } } })`)
}

/** A member that the author wrote, methods of a class included, but nothing that every object has. */
function member(holder: unknown, name: unknown): unknown {
  if (typeof holder !== 'object' || holder === null) return undefined
  const value = (holder as Part)[name as string]
  return value === (Object.prototype as unknown as Part)[name as string] ? undefined : value
}

const missing = (what: string, mend: string) =>
  new WireFault(FAULT.noHandler, `there is no handler for ${what}; write: ${mend}`)

export const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'

const settle = (answer: unknown, then: (value: unknown) => unknown): unknown =>
  isThenable(answer) ? answer.then(then) : then(answer)

/** `{ output }`, perhaps with one more member, is what it says; anything else is the output itself. */
const outputWith =
  (extra: string) =>
  (answer: unknown): unknown => {
    const isWrapped =
      typeof answer === 'object' &&
      answer !== null &&
      Object.hasOwn(answer, 'output') &&
      Object.keys(answer).every((key) => key === 'output' || key === extra)
    return isWrapped ? answer : { output: answer ?? {} }
  }
