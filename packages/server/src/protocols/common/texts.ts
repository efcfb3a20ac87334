import type { RunEvent } from '@sluice/core'

/** Where an event arose: the way to its node, without the outermost graph. */
export const placeOf = ({ path, nodeName }: { readonly path: readonly string[]; readonly nodeName: string }): string =>
  [...path.slice(1), nodeName].join('/')

/** Whether an event is of the run itself, and not of one inside it. */
export const isOutermost = ({ path }: Pick<RunEvent, 'path'>): boolean => path.length === 1

/** One answer of a model as it comes in: a message, or a part of one, of the client's. */
export interface Text {
  readonly id: string
  readonly place: string
  readonly parts: string[]
}

export const textOf = ({ parts }: Text): string => parts.join('')

/** Which texts a run has said, and which of them are still open, one at most for each node. */
export class Texts {
  readonly #prefix: string
  readonly #open = new Map<string, Text>()
  readonly #said: Text[] = []

  constructor(prefix: string) {
    this.#prefix = prefix
  }

  /** The text that a token of a node goes on with; it is new when it has no parts yet. */
  at(place: string): Text {
    const open = this.#open.get(place)
    if (open !== undefined) return open
    const text: Text = { id: `${this.#prefix}${this.#said.length + 1}`, place, parts: [] }
    this.#open.set(place, text)
    this.#said.push(text)
    return text
  }

  /** Ends the open text of a node, if there is one. */
  end(place: string): Text | undefined {
    const open = this.#open.get(place)
    this.#open.delete(place)
    return open
  }

  endAll(): readonly Text[] {
    const open = [...this.#open.values()]
    this.#open.clear()
    return open
  }

  /** Takes the last `tokens` parts of a node back. What is handed back are the texts concerned, as they are now. */
  retract(place: string, tokens: number): readonly Text[] {
    const concerned: Text[] = []
    let left = tokens
    for (const text of this.#said.filter((each) => each.place === place).reverse()) {
      if (left === 0) break
      if (text.parts.length === 0) continue
      left -= text.parts.splice(Math.max(0, text.parts.length - left)).length
      concerned.push(text)
    }
    return concerned
  }

  /** Whether some text that stands is this one. */
  hasSaid(text: string): boolean {
    return this.#said.some((each) => textOf(each).trim() === text.trim())
  }
}
