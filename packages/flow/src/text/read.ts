import type { Report } from '../faults/report.ts'
import { MAX_BYTES } from './limits.ts'
import { readJson } from './read-json.ts'
import { readYaml } from './read-yaml.ts'
import type { Reading } from './reading.ts'

const FORMATS = ['json', 'yaml'] as const
export type Format = (typeof FORMATS)[number]

export interface TextOptions {
  /** Named in errors; its extension tells the format where `format` does not. */
  readonly file?: string
  readonly format?: Format
}

/** Reads a text of either format. What is wrong with it goes to the report; `undefined` when nothing can be made of it. */
export async function readText(text: string, report: Report, options: TextOptions): Promise<Reading | undefined> {
  if (isTooLarge(text)) {
    report.fault('FLOW_TOO_LARGE', [], `the document has more than ${MAX_BYTES / 1024 / 1024} MiB. Split it.`, {
      offset: 0,
    })
    return undefined
  }
  const format = options.format ?? formatOf(text, options.file)
  if (!FORMATS.includes(format)) {
    report.fault('FLOW_FORMAT', [], `unknown format "${format}"; formats are: ${FORMATS.join(', ')}.`, { offset: 0 })
    return undefined
  }
  return format === 'json' ? readJson(text, report) : readYaml(text, report)
}

function formatOf(text: string, file: string | undefined): Format {
  const extension = /\.(json|ya?ml)$/i.exec(file ?? '')?.[1]?.toLowerCase()
  if (extension !== undefined) return extension === 'json' ? 'json' : 'yaml'
  return /^\s*\{/.test(text) ? 'json' : 'yaml'
}

/** One UTF-16 unit has at most three bytes in UTF-8, so most texts need no counting. */
function isTooLarge(text: string): boolean {
  if (text.length > MAX_BYTES) return true
  return text.length * 3 > MAX_BYTES && new TextEncoder().encode(text).length > MAX_BYTES
}
