import { describe, it } from 'vitest'
import { storeContract } from './contract.ts'
import { MemoryStore } from './memory.ts'

describe('a store in memory', () => {
  it.each(storeContract)('$name', ({ check }) => check(new MemoryStore()))
})
