/** The way from the root of a document to a value: keys of objects and positions in lists. */
export type Path = readonly (string | number)[]

const PLAIN_KEY = /^[A-Za-z_$][\w$]*$/

/** A JSON path: `$.nodes[2].tool`, and `$["two words"]` for a key that is no word. */
export function showPath(path: Path): string {
  return `$${path.map((key) => (typeof key === 'number' ? `[${key}]` : PLAIN_KEY.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`)).join('')}`
}
