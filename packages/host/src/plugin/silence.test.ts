import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SilenceLimit } from './silence.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('a limit to silence (L5)', () => {
  it('is over after its time, unless it was ended', () => {
    const over = vi.fn()
    const limit = new SilenceLimit(100, over)
    vi.advanceTimersByTime(99)
    expect(over).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1)
    expect(over).toHaveBeenCalledOnce()
    limit.end()
    new SilenceLimit(100, over).end()
    vi.advanceTimersByTime(1_000)
    expect(over).toHaveBeenCalledOnce()
  })

  it('begins anew with each word', () => {
    const over = vi.fn()
    const limit = new SilenceLimit(100, over)
    for (let i = 0; i < 5; i++) {
      vi.advanceTimersByTime(90)
      limit.heard()
    }
    expect(over).not.toHaveBeenCalled()
    vi.advanceTimersByTime(100)
    expect(over).toHaveBeenCalledOnce()
  })

  it('stands still while the host serves the plugin, however much at a time', async () => {
    const over = vi.fn()
    const limit = new SilenceLimit(100, over)
    const served = [1_000, 2_000].map((ms) => limit.held(() => new Promise<void>((done) => setTimeout(done, ms))))
    limit.heard()
    await vi.advanceTimersByTimeAsync(1_999)
    expect(over).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(101)
    await Promise.all(served)
    expect(over).toHaveBeenCalledOnce()
  })

  it('does not come back when what was served settles after the end', async () => {
    const over = vi.fn()
    const limit = new SilenceLimit(100, over)
    const served = limit.held(() => new Promise<void>((done) => setTimeout(done, 50)))
    limit.end()
    await vi.advanceTimersByTimeAsync(1_000)
    await served
    expect(over).not.toHaveBeenCalled()
  })
})
