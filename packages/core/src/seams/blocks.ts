/** Where a block stands in its response. */
export interface BlockAt {
  /** What has left before it, as it was judged. */
  readonly before: string
  /** Whether the response ends with it. */
  readonly last: boolean
}

/** What becomes of a block: nothing, it leaves; text leaves in its place; `held` waits and begins the next block. */
export type BlockVerdict = undefined | string | { readonly leaves: string; readonly held: string }

/** Parts of a response leave in blocks, each as it was judged. */
export interface StreamBlocks {
  /** Characters that a block has at least; the last one may have fewer. */
  readonly characters: number
  /** Throws, or rejects, to let nothing more leave: the model call fails. */
  judge(block: string, at: BlockAt): BlockVerdict | Promise<BlockVerdict>
}

/**
 * A stream gate for {@link Middleware.stream}: what a user has seen was judged, in blocks of at least so many characters, and
 * so was what is handed on where nobody streams. A response that somebody supplied in place of a model's passes as well, unless
 * a policy had the last word. A verdict on a later block cannot call back an earlier one.
 *
 * @throws RangeError for `characters` that are no whole number of 1 or more.
 */
export function blocks(characters: number, judge: StreamBlocks['judge']): StreamBlocks {
  if (Number.isSafeInteger(characters) && characters >= 1) return { characters, judge }
  throw new RangeError(`blocks(${characters}, …) needs a whole number of characters, 1 or more.`)
}

/** The way of one response's text past one judge. */
class BlockGate {
  readonly #blocks: StreamBlocks
  readonly #leave: (text: string) => void | Promise<void>
  #waiting = ''
  #before = ''

  constructor(blocks: StreamBlocks, leave: (text: string) => void | Promise<void>) {
    this.#blocks = blocks
    this.#leave = leave
  }

  add(text: string): void | Promise<void> {
    this.#waiting += text
    return this.#waiting.length < this.#blocks.characters ? undefined : this.#judge(false)
  }

  async end(): Promise<void> {
    if (this.#waiting !== '') await this.#judge(true)
  }

  async #judge(last: boolean): Promise<void> {
    const block = this.#waiting
    const verdict = await this.#blocks.judge(block, { before: this.#before, last })
    const { leaves, held } =
      typeof verdict === 'object' ? verdict : { leaves: verdict === undefined ? block : verdict, held: '' }
    this.#waiting = last ? '' : held
    const text = last ? leaves + held : leaves
    this.#before += text
    if (text !== '') await this.#leave(text)
  }
}

/** The way of a response's text past several judges, one after the other; what comes out at the end is `text`. */
export class BlockGates {
  readonly #gates: readonly BlockGate[]
  text = ''

  constructor(judges: readonly StreamBlocks[], leave: (text: string) => void) {
    let next = (text: string): void | Promise<void> => {
      this.text += text
      leave(text)
    }
    const gates: BlockGate[] = []
    for (const judge of [...judges].reverse()) {
      const gate = new BlockGate(judge, next)
      gates.unshift(gate)
      next = (text) => gate.add(text)
    }
    this.#gates = gates
  }

  async add(text: string): Promise<void> {
    await this.#gates[0]?.add(text)
  }

  async end(): Promise<void> {
    for (const gate of this.#gates) await gate.end()
  }
}
