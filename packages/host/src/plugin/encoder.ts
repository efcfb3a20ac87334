import { isObject, type Json, own, type RunEvent } from '@sluice/core'
import { OWN_PROTOCOL } from '../manifest/component.ts'
import { callPlugin } from './direct.ts'
import { type ComponentSite, noAnswer } from './node.ts'

/** One piece of a rendered stream. `event` is its name, where the protocol has names. */
export interface Frame {
  readonly event?: string
  readonly data: Json
}

/** Renders one stream of events. Each call waits for the one before. */
export interface Rendering {
  encode(event: RunEvent): Promise<readonly Frame[]>
  /** Once, after the last event. */
  finish(): Promise<readonly Frame[]>
}

/** A way to render what a run publishes, chosen by whoever reads it. */
export interface Encoder {
  readonly protocol: string
  /** The media type of what the frames make. */
  readonly contentType: string
  /** @param signal ends it when nobody reads any more. */
  start(signal?: AbortSignal): Rendering
}

let streams = 0

/** An encoder that a plugin serves. */
export function remoteEncoder(
  { componentType, ...site }: ComponentSite,
  { protocol, contentType }: Pick<Encoder, 'protocol' | 'contentType'>,
): Encoder {
  return {
    protocol,
    contentType,
    start(signal = new AbortController().signal) {
      const streamId = String(++streams)
      const ask = async (method: string, more: object = {}) => {
        const params = { componentType, streamId, ...more }
        return framesIn(await callPlugin({ ...site, method, params, ctx: { signal } }), site.plugin, componentType)
      }
      return { encode: (event) => ask('encode', { event }), finish: () => ask('finishEncode') }
    },
  }
}

/** What a stream is where nobody renders it otherwise: each event under its type. */
export const OWN_ENCODER: Encoder = {
  protocol: OWN_PROTOCOL,
  contentType: 'text/event-stream',
  start: () => ({
    encode: async (event) => [{ event: event.type, data: event as unknown as Json }],
    finish: async () => [],
  }),
}

function framesIn(answer: unknown, plugin: string, componentType: string): readonly Frame[] {
  if (answer === null) return []
  if (!Array.isArray(answer) || !answer.every(isFrame)) throw noAnswer(plugin, componentType, '[{ event?, data }]')
  return answer.map(({ event, data }) => ({ ...(event != null && { event }), data: own(data, 'the data of a frame') }))
}

/** The name of a frame stands in a line of its own. */
const isFrame = (frame: unknown): frame is { readonly event?: string; readonly data: unknown } =>
  isObject(frame) &&
  frame.data !== undefined &&
  (frame.event == null || (typeof frame.event === 'string' && !/[\r\n]/.test(frame.event)))
