import type { RunEvent } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { LiveLine } from './live-line.ts'

const at = (nodeName: string, type: 'node_start' | 'node_complete'): RunEvent =>
  ({ type, path: ['run'], nodeName, nodeType: 'ToolNode', attempt: 1, output: {} }) as RunEvent

/** What a terminal shows in the end: what was cleared is gone. */
function screen() {
  let text = ''
  let ms = 0
  const line = new LiveLine({ write: (part) => (text += part), now: () => ms, columns: () => 40 })
  const shown = () =>
    text
      .split('\n')
      .map((row) => row.split('\r\u001b[2K').at(-1))
      .join('\n')
  return { line, shown, wait: (more: number) => (ms += more) }
}

describe('the live line', () => {
  it('says what runs and for how long, below everything else', () => {
    const { line, shown, wait } = screen()
    line.follow(at('lookup', 'node_start'))
    line.write('● support\n')
    wait(3_200)
    line.draw()
    expect(shown()).toBe('● support\n  … lookup 3 s')
    line.write('  ! a warning\n')
    expect(shown()).toBe('● support\n  ! a warning\n  … lookup 3 s')
  })

  it('is gone when nothing runs', () => {
    const { line, shown } = screen()
    line.follow(at('lookup', 'node_start'))
    line.draw()
    line.follow(at('lookup', 'node_complete'))
    line.write('  ✓ lookup\n')
    expect(shown()).toBe('  ✓ lookup\n')
  })

  it('stays away from a text that has not ended its line', () => {
    const { line, shown } = screen()
    line.follow(at('agent', 'node_start'))
    line.write('Hello ')
    line.write('you')
    line.draw()
    expect(shown()).toBe('Hello you')
  })

  it('never wraps, and shows control characters of names as escapes', () => {
    const { line, shown } = screen()
    line.follow(at('a\u001b[2J'.padEnd(100, 'x'), 'node_start'))
    line.draw()
    expect(shown()).toHaveLength(39)
    expect(shown()).toContain('a\\u001b[2J')
  })
})
