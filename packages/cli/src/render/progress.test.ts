import type { RunEvent } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { Progress } from './progress.ts'

function shown(events: readonly RunEvent[], verbose = false): string {
  let text = ''
  let clock = 0
  const progress = new Progress({ write: (part) => (text += part), colors: false, verbose, now: () => (clock += 600) })
  for (const event of events) progress.show(event)
  return text
}

const path = ['support']
const at = { path, nodeName: 'lookup', nodeType: 'ToolNode' }

describe('the progress of a run', () => {
  it('is one line for each thing that happened, indented under its run', () => {
    const lines = shown([
      { type: 'run_start', graphName: 'support', runId: 'r', path },
      { type: 'node_start', ...at, attempt: 1 },
      { type: 'node_error', ...at, attempt: 1, error: { name: 'Error', message: 'timed out' } },
      {
        type: 'warning',
        path,
        message: 'policy "RetryPolicy" retries node "lookup" in 500 ms',
        policy: 'RetryPolicy',
        seam: 'nodeError',
        half: 'after',
        nodeName: 'lookup',
      },
      { type: 'node_complete', ...at, attempt: 2, output: {} },
      { type: 'run_end', path, status: 'completed', result: {} },
    ])
    expect(lines.split('\n')).toEqual([
      '● support',
      '  ✗ lookup  attempt 1 failed: timed out',
      '  ! nodeError.after  policy "RetryPolicy" retries node "lookup" in 500 ms',
      '  ✓ lookup  600 ms',
      '',
    ])
  })

  it('shows control characters of names, reasons and arguments as escapes, so that no text can fake a line', () => {
    const evil = 'ok\n✓ all fine\u001b[2J'
    const lines = shown([{ type: 'tool_result', ...at, toolName: evil, toolCallId: 'c', refused: evil }])
    expect(lines).toBe('  ✗ lookup  ok\\n✓ all fine\\u001b[2J  refused: ok\\n✓ all fine\\u001b[2J\n')
    const error = { name: 'Error', message: 'no', code: evil }
    expect(shown([{ type: 'run_end', path, status: 'failed', error }])).not.toContain('\u001b')
  })

  it('says that a run waits, and not that it failed', () => {
    expect(shown([{ type: 'run_end', path, status: 'paused', asks: [] }])).toBe('‖ paused\n')
  })

  it('keeps streamed text apart from lines', () => {
    const lines = shown([
      { type: 'token', ...at, text: 'Hello ' },
      { type: 'token', ...at, text: 'you' },
      { type: 'node_complete', ...at, attempt: 1, output: {} },
    ])
    expect(lines).toBe('    Hello you\n  ✓ lookup  0 ms\n')
  })

  it('cuts long values, and shows them whole when asked', () => {
    const call: RunEvent = {
      type: 'tool_call',
      ...at,
      toolName: 'shell',
      toolCallId: 'c',
      toolArgs: { cmd: 'x'.repeat(500) },
    }
    expect(shown([call]).length).toBeLessThan(250)
    expect(shown([call], true).length).toBeGreaterThan(500)
  })
})
