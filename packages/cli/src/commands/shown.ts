import type { RunEvent } from '@sluice/core'
import type { HostOptions } from '@sluice/host'
import { LiveLine } from '../render/live-line.ts'
import { Progress } from '../render/progress.ts'

export interface Shown {
  show(event: RunEvent): void
  line(text: string): void
  /** Takes away what is not to stay. */
  settle(): void
  /** The same for good. */
  end(): void
}

/** What a person is told: lines that stay and, on a terminal, one that says what runs just now. */
export function progressOf({ verbose = false, talk = false }: { verbose?: boolean; talk?: boolean }): Shown {
  const { stderr } = process
  const now = () => performance.now()
  const live = new LiveLine({ write: (text) => stderr.write(text), now, columns: () => stderr.columns || 80 })
  const write = stderr.isTTY ? (text: string) => live.write(text) : (text: string) => void stderr.write(text)
  const colors = stderr.isTTY === true && process.env.NO_COLOR === undefined
  const progress = new Progress({ write, colors, verbose, talk, now })
  const timer = stderr.isTTY ? setInterval(() => live.draw(), 1_000).unref() : undefined
  const settle = () => {
    if (stderr.isTTY) live.clear()
  }
  return {
    show(event) {
      live.follow(event)
      progress.show(event)
    },
    line: (text) => progress.line(text),
    settle,
    end() {
      clearInterval(timer)
      settle()
    },
  }
}

/** What plugins write for people, line by line, and what the host has to say of them. */
export function spokenBy(shown: Pick<Shown, 'line'>): Pick<HostOptions, 'onWarning' | 'onStderr'> {
  return {
    onWarning: (message) => shown.line(`! ${message}`),
    onStderr: (plugin, text) => {
      for (const line of text.split('\n').filter((part) => part.trim() !== '')) shown.line(`· ${plugin}  ${line}`)
    },
  }
}
