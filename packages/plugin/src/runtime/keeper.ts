import type { Kept } from '../author/kept.ts'
import { MAX_KEPT_LENGTH } from '../wire/frames.ts'

/** What a policy keeps, as one call brought it. */
export class Keeper implements Kept {
  #value: unknown
  #isChanged = false
  readonly #isOver: () => boolean

  /**
   * @param isOver whether the handler has answered.
   * @throws TypeError when the call brought nothing: the manifest declares nothing.
   */
  constructor(value: unknown, isOver: () => boolean) {
    if (value === undefined) {
      throw new TypeError(
        'ctx.kept is read, and the manifest declares none; give the component kept: { "scope": "turn", "schema": { … } }',
      )
    }
    this.#value = value
    this.#isOver = isOver
  }

  get value(): unknown {
    return this.#value
  }

  update(change: (value: unknown) => unknown): unknown {
    if (this.#isOver()) throw refusal('KEPT_LATE', 'is changed after the handler has answered')
    const text = JSON.stringify(change(this.#value), refuseNonJson)
    if (text === undefined) throw refusal('KEPT_VALUE', 'is given nothing; return the new value')
    if (text.length > MAX_KEPT_LENGTH)
      throw refusal('KEPT_VALUE', `is given more than ${MAX_KEPT_LENGTH} characters of JSON`)
    this.#value = JSON.parse(text)
    this.#isChanged = true
    return this.#value
  }

  /** The verdict as it goes back. */
  with(verdict: unknown): unknown {
    return this.#isChanged && typeof verdict === 'object' ? { ...verdict, kept: this.#value } : verdict
  }
}

/** JSON has a text for things that it cannot bring back: a promise becomes `{}`, and a count would begin anew. */
function refuseNonJson(this: unknown, key: string, value: unknown): unknown {
  const given = (this as { readonly [key: string]: unknown })[key]
  if (isJson(given)) return value
  const what = typeof given === 'object' ? `a ${given?.constructor?.name ?? 'class instance'}` : String(given)
  throw refusal('KEPT_VALUE', `is given ${what}, which is no JSON`)
}

function isJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return typeof value !== 'function'
  const prototype = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}

const refusal = (code: string, why: string): TypeError => Object.assign(new TypeError(`what is kept ${why}`), { code })
