/** US dollars for a million tokens. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
  /** What holds for the whole request where its input has more tokens than `above`. */
  readonly long?: { readonly above: number; readonly input: number; readonly output: number }
}

/** When the prices of {@link MODEL_PRICES} were taken down, and from where. They change: give your own where it matters. */
export const PRICES_AS_OF = {
  date: '2026-09-23',
  source:
    'https://github.com/pydantic/genai-prices, release 0.1.8 (MIT), list prices without discounts for cached input',
} as const

/** List prices by model, as of {@link PRICES_AS_OF}. */
export const MODEL_PRICES: Readonly<Record<string, ModelPrice>> = {
  'claude-haiku-4-5': { input: 1, output: 5 },
  'claude-opus-4-1': { input: 15, output: 75 },
  'claude-opus-4-5': { input: 5, output: 25 },
  'claude-opus-4-6': { input: 5, output: 25 },
  'claude-opus-4-7': { input: 5, output: 25 },
  'claude-opus-5': { input: 5, output: 25 },
  'claude-sonnet-4-0': { input: 3, output: 15 },
  'claude-sonnet-4-5': { input: 3, output: 15, long: { above: 200_000, input: 6, output: 22.5 } },
  'claude-sonnet-4-6': { input: 3, output: 15 },
  'claude-sonnet-5': { input: 2, output: 10 },
  'gemini-2.5-flash': { input: 0.3, output: 2.5 },
  'gemini-2.5-flash-lite': { input: 0.1, output: 0.4 },
  'gemini-2.5-pro': { input: 1.25, output: 10, long: { above: 200_000, input: 2.5, output: 15 } },
  'gemini-3-flash-preview': { input: 0.5, output: 3 },
  'gemini-3-pro-preview': { input: 2, output: 12, long: { above: 200_000, input: 4, output: 18 } },
  'gemini-3.1-pro-preview': { input: 2, output: 12, long: { above: 200_000, input: 4, output: 18 } },
  'gpt-4.1': { input: 2, output: 8 },
  'gpt-4.1-mini': { input: 0.4, output: 1.6 },
  'gpt-4.1-nano': { input: 0.1, output: 0.4 },
  'gpt-4o': { input: 2.5, output: 10 },
  'gpt-4o-mini': { input: 0.15, output: 0.6 },
  'gpt-5': { input: 1.25, output: 10 },
  'gpt-5-mini': { input: 0.25, output: 2 },
  'gpt-5-nano': { input: 0.05, output: 0.4 },
  'gpt-5-pro': { input: 15, output: 120 },
  'gpt-5.1': { input: 1.25, output: 10 },
  'gpt-5.2': { input: 1.75, output: 14 },
  'gpt-5.4': { input: 2.5, output: 15, long: { above: 271_999, input: 5, output: 22.5 } },
  'gpt-5.4-mini': { input: 0.75, output: 4.5 },
  'gpt-5.5': { input: 5, output: 30, long: { above: 271_999, input: 10, output: 45 } },
  'grok-3-mini': { input: 0.3, output: 0.5 },
  'grok-4': { input: 3, output: 15 },
  o3: { input: 2, output: 8 },
  'o4-mini': { input: 1.1, output: 4.4 },
}

/** A day at the end of a model's name, as `-2026-08-07` or `-20260807`; or that it is whichever is newest. */
const RELEASE = /-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$/

/** The price of a model in the first table that has it: by its whole name, without its provider's, and without its release. */
export function priceOf(
  model: string,
  ...tables: readonly Readonly<Record<string, ModelPrice>>[]
): ModelPrice | undefined {
  const bare = model.slice(model.lastIndexOf('/') + 1)
  for (const name of [model, bare, model.replace(RELEASE, ''), bare.replace(RELEASE, '')]) {
    const table = tables.find((prices) => Object.hasOwn(prices, name))
    if (table !== undefined) return table[name]
  }
  return undefined
}

/** US dollars for so many tokens. */
export function costOf(price: ModelPrice, inputTokens: number, outputTokens: number): number {
  const { input, output } = price.long !== undefined && inputTokens > price.long.above ? price.long : price
  return (inputTokens * input + outputTokens * output) / 1_000_000
}
