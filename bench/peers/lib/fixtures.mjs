// Plain data shared by the suites.
const line = 'The quick brown fox jumps over the lazy dog while the agent waits for an answer. '

export const tenMessages = () =>
  Array.from({ length: 10 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', id: `m${i}`, content: line.repeat(3) }))

export const longText = line.repeat(3)
export const ROUNDS = 10
