import { describe, expect, it } from 'vitest'
import { describeOwner, isGone, type Owner, thisProcess } from './owner.ts'

const here = thisProcess()
/** Linux hands out no number above 4,194,304. */
const NOBODY = 4_194_305

describe('the holder of a lease', () => {
  it.each<{ name: string; owner: Owner; gone: boolean }>([
    { name: 'is this process', owner: here, gone: false },
    { name: 'has ended', owner: { ...here, pid: NOBODY }, gone: true },
    { name: 'had the number of this process', owner: { ...here, start: '1' }, gone: true },
    { name: 'is on another host, where nobody can look', owner: { ...here, host: 'far', pid: NOBODY }, gone: false },
    { name: 'is in another container of this host', owner: { ...here, space: 'pid:[1]', pid: NOBODY }, gone: false },
  ])('$name', ({ owner, gone }) => expect(isGone(owner)).toBe(gone))

  it.runIf(process.platform === 'linux')('had the number that another process has now', () => {
    expect(isGone({ ...here, pid: process.ppid, start: '1' })).toBe(true)
  })

  it.each([
    { owner: here, text: 'another run of this process' },
    { owner: { ...here, pid: 7 }, text: 'process 7' },
    { owner: { ...here, host: 'far', pid: 7 }, text: 'process 7 on host "far"' },
    { owner: undefined, text: 'another process' },
  ])('is called "$text"', ({ owner, text }) => expect(describeOwner(owner)).toBe(text))
})
