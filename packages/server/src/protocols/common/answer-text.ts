import { isObject, type Json } from '@sluice/core'
import type { CheckedFlow } from '@sluice/flow'

/** What a flow has to say to a person: the value of its only output, where that is a text. */
export function answerText({ outputs, openOutputs }: Ported, result: Json | undefined): string | undefined {
  if (!isObject(result)) return undefined
  const titles = openOutputs ? Object.keys(result) : outputs.map(({ title }) => title)
  const [title, ...others] = titles
  const value = title === undefined || others.length > 0 ? undefined : result[title]
  return typeof value === 'string' ? value : undefined
}

export type Ported = Pick<CheckedFlow, 'outputs' | 'openOutputs'>
