// #region test
import { handlersOf, type PolicyHandlers, testPolicy } from '@sluice/plugin'
import { describe, expect, it } from 'vitest'
import { SpendLimit as Typed } from './typed.ts'

const { SpendLimit } = (await handlersOf(new URL('./spend-limit.mjs', import.meta.url))) as {
  SpendLimit: PolicyHandlers
}

/** What the policy says to a payment, and what it keeps from then on. */
const asked = (amount: number, given: { readonly spent: number; readonly revisit?: boolean }) =>
  testPolicy(SpendLimit, {
    seam: 'toolCall',
    subject: { nodeName: 'agent', toolName: 'pay' },
    input: { amount },
    settings: { limit: 100 },
    kept: { spent: given.spent },
    revisit: given.revisit ?? false,
  })

describe('SpendLimit', () => {
  it('lets a payment in and counts it', async () => {
    expect(await asked(60, { spent: 40 })).toMatchObject({ verdict: { action: 'proceed' }, kept: { spent: 100 } })
  })

  it('refuses what would be too much, and counts it not', async () => {
    const { verdict, kept } = await asked(61, { spent: 40 })
    expect(verdict).toEqual({ action: 'reject', reason: '40 of 100 are spent; 61 more are too much' })
    expect(kept).toBeUndefined()
  })

  it('counts a payment once, however often it is asked about it', async () => {
    const { verdict, kept } = await asked(60, { spent: 100, revisit: true })
    expect([verdict, kept]).toEqual([{ action: 'proceed' }, undefined])
  })
})
// #endregion

describe('the same in TypeScript', () => {
  it('knows what it keeps', async () => {
    const { kept } = await testPolicy(Typed, { seam: 'toolCall', input: { amount: 60 }, kept: { spent: 40 } })
    expect(kept).toEqual({ spent: 100 })
    const { verdict } = await testPolicy(Typed, { seam: 'toolCall', input: { amount: 61 }, kept: { spent: 40 } })
    expect(verdict.action).toBe('reject')
  })
})
