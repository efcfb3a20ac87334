import { describe, expect, it } from 'vitest'
import { halvesOf } from './policy.ts'
import { admits, HALVES, SEAM_NAMES, SEAMS } from './table.ts'

describe('the table of seams', () => {
  it('lists seven', () => {
    expect(SEAM_NAMES).toEqual(['run', 'node', 'nodeError', 'agentRound', 'modelCall', 'toolCall', 'ask'])
  })

  it('is closed: whoever writes to a list that it hands out gets an error, and it stays as it is', () => {
    for (const seam of SEAM_NAMES)
      for (const half of HALVES) expect(() => (admits(seam, half) as string[]).push('retry')).toThrow(TypeError)
    expect(() => Object.assign(SEAMS, { toolResult: SEAMS.toolCall })).toThrow(TypeError)
    expect(() => Object.assign(SEAMS.node, { reject: 'error' })).toThrow(TypeError)
    expect(() => (SEAM_NAMES as string[]).push('toolResult')).toThrow(TypeError)
    expect(() => (HALVES as string[]).push('around')).toThrow(TypeError)
    expect(admits('toolCall', 'after')).toEqual(['pass', 'replace', 'reject', 'fail'])
  })

  it('moves on in before with proceed and in after with pass, wherever it has that half', () => {
    for (const seam of SEAM_NAMES)
      for (const half of halvesOf(seam)) expect(admits(seam, half)[0]).toBe(half === 'before' ? 'proceed' : 'pass')
  })

  it('has no before at nodeError: the node has already failed', () => {
    expect(halvesOf('nodeError')).toEqual(['after'])
    expect(SEAM_NAMES.filter((seam) => halvesOf(seam).length < 2)).toEqual(['nodeError'])
  })
})
