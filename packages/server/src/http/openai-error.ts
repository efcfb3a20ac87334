import type { ErrorBody } from './errors.ts'

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}

/** Whether a path is one of those that clients of OpenAI know, and expect its errors from. */
export const isOpenAiPath = (path: string): boolean => /^\/v1\/(?:chat|models)(?:\/|$)/.test(path)

/** An error as those clients read it. */
export function openAiError(status: number, { code, message }: Partial<ErrorBody['error']>) {
  const type = TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error')
  return { error: { message, type, param: null, code: code === 'FLOW_UNKNOWN' ? 'model_not_found' : (code ?? null) } }
}
