import fc from 'fast-check'

/** Any value that Sluice takes as JSON. */
export const anyJson = fc
  .jsonValue({ depthSize: 'medium' })
  .filter((value) => !JSON.stringify(value).includes('__proto__'))
