import type { Subject } from './subject.ts'

/** More call sites than this are not remembered at once; keys of questions may be made up on the way. */
const MOST = 1_000

/** Remembers something for each call site: for subjects that differ at most in what no selector is shown of them. */
export class CallSites<Value> {
  readonly #make: (site: Subject) => Value
  readonly #known = new Map<string, { readonly site: Subject; readonly value: Value }[]>()
  #count = 0

  constructor(make: (site: Subject) => Value) {
    this.#make = make
  }

  at(subject: Subject): Value {
    const name = subject.nodeName ?? subject.graphName ?? ''
    const known = this.#known.get(name)
    if (known !== undefined) for (const { site, value } of known) if (isSame(site, subject)) return value
    return this.#remember(name, subject)
  }

  #remember(name: string, { toolCallId: _, key: __, ...site }: Subject): Value {
    if (++this.#count > MOST) {
      this.#known.clear()
      this.#count = 1
    }
    const value = this.#make(Object.freeze(site))
    const there = this.#known.get(name)
    if (there === undefined) this.#known.set(name, [{ site, value }])
    else there.push({ site, value })
    return value
  }
}

const isSame = (a: Subject, b: Subject): boolean =>
  a.toolName === b.toolName &&
  a.nodeName === b.nodeName &&
  a.nodeType === b.nodeType &&
  a.caller === b.caller &&
  a.source === b.source &&
  a.graphName === b.graphName &&
  a.resuming === b.resuming &&
  a.nested === b.nested &&
  a.askedBy === b.askedBy
