import { type Half, SEAMS, type Seam } from '../generated/seams.ts'

type Answer = { readonly [key: string]: unknown }

const MAX_REMARKS = 16
const MAX_REMARK_LENGTH = 1024

/**
 * Says why an answer is no verdict of this half, as the host would; the text continues a sentence about the policy.
 * `undefined` when it is one.
 */
export function faultOfVerdict(seam: Seam, half: Half, answer: unknown): string | undefined {
  const admitted: readonly string[] = SEAMS[seam][half]
  const list = `${seam}.${half} admits: ${admitted.join(', ')}`
  if (!isObject(answer) || typeof answer.action !== 'string') return `answered no verdict; ${list}`
  if (!admitted.includes(answer.action)) return `answered "${answer.action}"; ${list}`
  return faultOfMembers(answer, admitted) ?? faultOfRemarks(answer)
}

function faultOfMembers(answer: Answer, admitted: readonly string[]): string | undefined {
  const { action, input, value, reason, ask, delayMs } = answer
  const without = (what: string) => `answered "${action}" without ${what}`
  switch (action) {
    case 'modify':
      return input === undefined ? without('"input"') : undefined
    case 'replace':
      return value === undefined ? without('"value"') : undefined
    case 'reject':
    case 'fail':
      return typeof reason === 'string' && reason.trim() !== '' ? undefined : without('a "reason" that says why')
    case 'suspend':
      return isObject(ask) ? faultOfAsk(ask, admitted) : without('an object "ask"')
    case 'retry':
      return isAbsent(delayMs) || (Number.isFinite(delayMs) && (delayMs as number) >= 0)
        ? undefined
        : 'answered "retry" with a "delayMs" that is not milliseconds, 0 or more'
  }
  return undefined
}

function faultOfAsk(
  { onAnswer, schema, expiresInMs, approvers }: Answer,
  admitted: readonly string[],
): string | undefined {
  const says = (what: string) => `answered "suspend" with ${what}`
  if (!isAbsent(onAnswer) && onAnswer !== 'result') return says('an "onAnswer" that is not "result"')
  if (!isAbsent(onAnswer) && !admitted.includes('replace')) return says('an answer that is to be the result, here')
  if (!isAbsent(schema) && !isObject(schema)) return says('a "schema" that is no JSON Schema')
  if (!isAbsent(expiresInMs) && !(typeof expiresInMs === 'number' && expiresInMs > 0))
    return says('an "expiresInMs" that is not milliseconds above 0')
  if (!isAbsent(approvers) && !(typeof approvers === 'string' && approvers.trim() !== '' && approvers.length <= 4_096))
    return says('"approvers" that are no text')
  return undefined
}

function faultOfRemarks({ code, warnings, labels, annotations }: Answer): string | undefined {
  if (code !== undefined && !isRemark(code)) return `gave a "code" that is no text of ${MAX_REMARK_LENGTH} characters`
  if (typeof code === 'string' && code.startsWith('sluice:')) return 'gave a "code" that is the engine\'s'
  for (const [name, list] of Object.entries({ warnings, labels })) {
    if (list !== undefined && !areRemarks(list))
      return `gave "${name}" that are no list of at most ${MAX_REMARKS} texts`
  }
  if (annotations === undefined) return undefined
  const isRead = isObject(annotations) && [Object.keys(annotations), Object.values(annotations)].every(areRemarks)
  return isRead ? undefined : `gave "annotations" that are no object of at most ${MAX_REMARKS} texts`
}

const isRemark = (value: unknown) => typeof value === 'string' && value.length <= MAX_REMARK_LENGTH
const areRemarks = (value: unknown) => Array.isArray(value) && value.length <= MAX_REMARKS && value.every(isRemark)
const isAbsent = (value: unknown) => value === undefined || value === null
const isObject = (value: unknown): value is Answer =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
