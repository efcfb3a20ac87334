import type { RunEvent } from '@sluice/core'

export interface Spent {
  readonly model: string
  inputTokens: number
  outputTokens: number
}

/** What a run's requests to models cost, for each model. */
export class Usages {
  readonly #of = new Map<string, Spent>()

  note({ model, usage }: RunEvent & { type: 'model_result' }): void {
    if (usage === undefined) return
    const spent = this.#of.get(model) ?? { model, inputTokens: 0, outputTokens: 0 }
    spent.inputTokens += usage.inputTokens
    spent.outputTokens += usage.outputTokens
    this.#of.set(model, spent)
  }

  get each(): readonly Readonly<Spent>[] {
    return [...this.#of.values()]
  }

  get total(): Omit<Spent, 'model'> {
    const sum = { inputTokens: 0, outputTokens: 0 }
    for (const { inputTokens, outputTokens } of this.each) {
      sum.inputTokens += inputTokens
      sum.outputTokens += outputTokens
    }
    return sum
  }
}
