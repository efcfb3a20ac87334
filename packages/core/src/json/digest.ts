import type { Json, JsonObject } from './json.ts'

/**
 * Digests JSON values: 64 bits as `h1:` and 16 hexadecimal digits. It tells whether a call is the same as before a pause; it
 * protects against changed code, not against an attacker. Equal values have equal digests whatever the order of their keys.
 * It is stored, so it never changes: another one would get another prefix.
 *
 * Two lanes of MurmurHash3's 32-bit block mix and finalizer (Austin Appleby, 2011, public domain), over a structural walk:
 * type and length first, then the parts; members of an object are combined by addition, which needs no sorting.
 *
 * A digester remembers the long lists in the last value it saw: where one has only grown, no more than its end is walked.
 */
export class Digester {
  readonly #lists = new Map<string, { readonly items: readonly Json[]; readonly a: number; readonly b: number }>()

  of(value: Json): string {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return textOf(digest(value))
    return textOf(this.#object(value as JsonObject))
  }

  #object(value: JsonObject): Lanes {
    const keys = Object.keys(value)
    const sum: Lanes = [0, 0]
    for (const key of keys) {
      const member = value[key] as Json
      addMember(sum, key, Array.isArray(member) && member.length >= LONG ? this.#list(key, member) : digest(member))
    }
    return closeObject(sum, keys.length)
  }

  #list(key: string, items: readonly Json[]): Lanes {
    const known = this.#lists.get(key)
    const grown = known !== undefined && startsWith(items, known.items)
    const lanes: Lanes = grown ? [known.a, known.b] : seed(LIST)
    for (let i = grown ? known.items.length : 0; i < items.length; i++) addItem(lanes, items[i] as Json)
    this.#lists.set(key, { items, a: lanes[0], b: lanes[1] })
    return closeList(lanes, items.length)
  }
}

/** The digest of one value. */
export const digestOf = (value: Json): string => textOf(digest(value))

type Lanes = [a: number, b: number]

/** A shorter list is walked as quickly as it is remembered. */
const LONG = 4

const [NULL, FALSE, TRUE, NUMBER, TEXT, LIST, OBJECT] = [0x11, 0x12, 0x13, 0x21, 0x31, 0x41, 0x51] as const

function digest(value: Json): Lanes {
  if (typeof value === 'string') return digestText(TEXT, value)
  if (typeof value === 'number') return digestText(NUMBER, String(value))
  if (value === null) return finish(seed(NULL), 0)
  if (typeof value === 'boolean') return value ? finish(seed(TRUE), 0) : finish(seed(FALSE), 0)
  if (Array.isArray(value)) {
    const lanes = seed(LIST)
    for (const item of value as readonly Json[]) addItem(lanes, item)
    return closeList(lanes, value.length)
  }
  const keys = Object.keys(value)
  const sum: Lanes = [0, 0]
  for (const key of keys) addMember(sum, key, digest((value as JsonObject)[key] as Json))
  return closeObject(sum, keys.length)
}

/** Where the lanes begin for a type: apart from each other, by the golden ratio. */
const seed = (type: number): Lanes => [type, Math.imul(type, 0x9e3779b1)]

function digestText(type: number, text: string): Lanes {
  let [a, b] = seed(type)
  const even = text.length & ~1
  for (let i = 0; i < even; i += 2) {
    const block = text.charCodeAt(i) | (text.charCodeAt(i + 1) << 16)
    a = mixA(a, block)
    b = mixB(b, block)
  }
  if (even < text.length) {
    a = mixA(a, text.charCodeAt(even))
    b = mixB(b, text.charCodeAt(even))
  }
  return finish([a, b], text.length)
}

function addItem(lanes: Lanes, item: Json): void {
  const [a, b] = digest(item)
  lanes[0] = mixA(lanes[0], a)
  lanes[1] = mixB(lanes[1], b)
}

function addMember(sum: Lanes, key: string, value: Lanes): void {
  const name = digestText(TEXT, key)
  const [a, b] = finish([mixA(name[0], value[0]), mixB(name[1], value[1])], 1)
  sum[0] = (sum[0] + a) | 0
  sum[1] = (sum[1] + b) | 0
}

const closeList = ([a, b]: Lanes, length: number): Lanes => finish([a, b], length)

const closeObject = ([a, b]: Lanes, count: number): Lanes => finish([mixA(OBJECT, a), mixB(OBJECT, b)], count)

const rotl = (x: number, by: number): number => (x << by) | (x >>> (32 - by))

function mixA(h: number, block: number): number {
  const k = Math.imul(rotl(Math.imul(block, 0xcc9e2d51), 15), 0x1b873593)
  return (Math.imul(rotl(h ^ k, 13), 5) + 0xe6546b64) | 0
}

/** The second lane: the multipliers of the 128-bit variant, so that the lanes do not move together. */
function mixB(h: number, block: number): number {
  const k = Math.imul(rotl(Math.imul(block, 0x239b961b), 16), 0xab0e9789)
  return (Math.imul(rotl(h ^ k, 17), 5) + 0x561ccd1b) | 0
}

function fmix(h: number): number {
  let x = h ^ (h >>> 16)
  x = Math.imul(x, 0x85ebca6b)
  x ^= x >>> 13
  x = Math.imul(x, 0xc2b2ae35)
  return x ^ (x >>> 16)
}

/** Lets the lanes into each other, as the 128-bit variant does at its end. */
function finish([a, b]: Lanes, length: number): Lanes {
  const x = fmix((a ^ length) + (b ^ length))
  return [x, fmix((b ^ length) + x)]
}

const textOf = ([a, b]: Lanes): string => `h1:${hex(a)}${hex(b)}`

const hex = (lane: number): string => (lane >>> 0).toString(16).padStart(8, '0')

function startsWith(items: readonly Json[], start: readonly Json[]): boolean {
  if (items.length < start.length) return false
  for (let i = 0; i < start.length; i++) if (items[i] !== start[i]) return false
  return true
}
