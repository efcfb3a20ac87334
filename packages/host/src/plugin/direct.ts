import { LOG_LEVELS, own, SluiceError } from '@sluice/core'
import { onAbort } from '../child/abort.ts'
import type { Asker } from './call.ts'
import { PluginError } from './error.ts'
import type { Peer } from './peer.ts'
import { SilenceLimit } from './silence.ts'

/** Milliseconds that a plugin at work may say nothing; a policy has its own time, which the gate keeps. */
export const SILENCE_MS = 30_000

/** What a caller gives a plugin that works for it: when to stop, and what it may ask. What is left out is refused. */
export interface PluginCallContext extends Pick<Asker, 'emitEvent' | 'log' | 'callModel' | 'runTool'> {
  readonly signal: AbortSignal
}

export interface DirectCall {
  readonly plugin: string
  readonly peer: Peer
  readonly method: string
  readonly params: object
  readonly ctx: PluginCallContext
  readonly silenceMs: number
  readonly onPartial?: (chunk: unknown) => void
}

/**
 * Asks a plugin for something that is no consultation.
 *
 * @throws the reason of `ctx.signal` once that aborts; PluginError `PLUGIN_TIMED_OUT` after `silenceMs` without a word.
 */
export async function callPlugin({
  plugin,
  peer,
  method,
  params,
  ctx,
  silenceMs,
  onPartial,
}: DirectCall): Promise<unknown> {
  ctx.signal.throwIfAborted()
  const call = peer.ask(
    method,
    params,
    askerOf(ctx, () => silence, onPartial),
  )
  const silence = new SilenceLimit(silenceMs, () => {
    const message = `plugin "${plugin}" timed out: it said nothing for ${silenceMs} ms of "${method}".`
    call.giveUp(new PluginError('PLUGIN_TIMED_OUT', message, { plugin }))
  })
  const forget = onAbort(ctx.signal, () => call.giveUp(ctx.signal.reason))
  try {
    return await call.answer
  } finally {
    forget()
    silence.end()
  }
}

/** The caller's offers, checked at this edge, each of them a word of the plugin. */
function askerOf(ctx: PluginCallContext, silence: () => SilenceLimit, onPartial: DirectCall['onPartial']): Asker {
  const { emitEvent, log, callModel, runTool } = ctx
  return {
    extend: () => silence().heard(),
    partial:
      onPartial &&
      ((chunk) => {
        silence().heard()
        onPartial(chunk)
      }),
    emitEvent:
      emitEvent &&
      ((name, data) => {
        silence().heard()
        emitEvent.call(ctx, eventName(name), own(data, `the data of event "${name}"`))
      }),
    log:
      log &&
      ((level, message) => {
        silence().heard()
        if (!LOG_LEVELS.includes(level) || typeof message !== 'string') throw badLog(level)
        log.call(ctx, level, message)
      }),
    callModel: callModel && ((request) => silence().held(() => callModel.call(ctx, request))),
    runTool: runTool && ((name, input) => silence().held(() => runTool.call(ctx, name, input))),
  }
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

function eventName(name: unknown): string {
  if (typeof name === 'string' && NAME.test(name)) return name
  throw new SluiceError('PLUGIN_CALL', `an event is named ${JSON.stringify(name)}; a name matches ${NAME.source}.`)
}

const badLog = (level: unknown) =>
  new SluiceError(
    'PLUGIN_CALL',
    `a log has a level of ${LOG_LEVELS.join(', ')} and a message that is text; this one has level ${JSON.stringify(level)}.`,
  )
