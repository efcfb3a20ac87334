import { messageOf } from '../errors/error.ts'

/** What HTTP says of a request that may go well when it is made again; RFC 9110, RFC 6585 and RFC 8470. */
const AGAIN = [408, 409, 425, 429]

/** What Node and undici call a connection that could not be made, or broke. */
const BROKEN =
  /^(?:ECONN(?:REFUSED|RESET)|E(?:HOST|NET)UNREACH|EAI_AGAIN|ENOTFOUND|EPIPE|ETIMEDOUT|UND_ERR_(?:SOCKET|\w+_TIMEOUT))$/

const IN_WORDS = /timed out|time-?out|fetch failed|socket hang up|network error|overloaded/i

/** An error and what led to it, as deep as anybody looks. */
function chain(error: unknown): readonly unknown[] {
  const errors: unknown[] = []
  for (let at = error; at !== undefined && at !== null && errors.length < 5; at = (at as { cause?: unknown }).cause) {
    errors.push(at)
  }
  return errors
}

/**
 * Whether an error may be gone when the call is made again: the status of a busy or broken server (408, 409, 425, 429, 5xx but
 * 501), as a number or at the start of the message, a connection that broke, or a time-out. What it was caused by counts too.
 */
export const isTransient = (error: unknown): boolean => {
  const errors = chain(error)
  const status = errors.map(statusOf).find((found) => found !== undefined)
  if (status !== undefined) return AGAIN.includes(status) || (status >= 500 && status !== 501)
  return errors.some((one) => BROKEN.test(codeOf(one)) || IN_WORDS.test(messageOf(one)))
}

function statusOf(error: unknown): number | undefined {
  const { status, statusCode } = error as { status?: unknown; statusCode?: unknown }
  const found = [status, statusCode, Number(/^([45]\d\d)\b/.exec(messageOf(error))?.[1])]
  return found.find((one): one is number => Number.isInteger(one))
}

const codeOf = (error: unknown): string => String((error as { code?: unknown }).code)

/** Whether an error says that the time of a call was over. */
export const isTimeOut = (error: unknown): boolean => chain(error).some((one) => /timed out/.test(messageOf(one)))

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000 }

/**
 * How long a server asks to wait, in milliseconds, where the message of an error says so: `Retry-After: 20`, `retry after 1.5s`,
 * `try again in 300 ms`. A number without a unit is seconds; a date is not read.
 */
export function retryAfterMs(error: unknown): number | undefined {
  for (const one of chain(error)) {
    const said = /(?:retry[- ]after|try again in)[:=\s]*(\d{1,9}(?:\.\d{1,9})?)\s?(ms|s|m)?/i.exec(messageOf(one))
    if (said !== null) return Math.ceil(Number(said[1]) * (UNITS[said[2]?.toLowerCase() ?? 's'] as number))
  }
  return undefined
}
