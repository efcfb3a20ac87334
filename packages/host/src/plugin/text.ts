import type { Json } from '@sluice/core'
import { MAX_MESSAGE_DEPTH } from '@sluice/plugin/wire'
import { PluginError } from './error.ts'
import { isWithin } from './message.ts'

/** Levels that the frame and its params take. */
const FRAME_LEVELS = 3

/** Two characters for each level: shorter text cannot be too deep. */
const SURELY_FLAT = 2 * (MAX_MESSAGE_DEPTH - FRAME_LEVELS)

let lastValue: unknown
let lastText = ''

/**
 * The JSON text of a value that a plugin is to be shown. The last one is kept: the policies of a half are shown the same
 * frozen value one after another, and it may be a whole conversation.
 *
 * @throws PluginError `PLUGIN_TOO_DEEP`.
 */
export function textOf(value: Json | object | undefined): string {
  if (value === lastValue && Object.isFrozen(value)) return lastText
  const text = JSON.stringify(value ?? null)
  if (text.length > SURELY_FLAT) {
    if (!isWithin(value, MAX_MESSAGE_DEPTH - FRAME_LEVELS)) {
      throw new PluginError(
        'PLUGIN_TOO_DEEP',
        `a plugin is to be shown a value nested deeper than ${MAX_MESSAGE_DEPTH} levels, which no message may have.`,
      )
    }
    lastValue = value
    lastText = text
  }
  return text
}
