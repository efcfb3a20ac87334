import { type FileHandle, open } from 'node:fs/promises'
import type { AuditSink } from '@sluice/core'

/** Only its owner reads the file: it says who did what. */
const MODE = 0o600
const NEWLINE = 0x0a

// JSON escapes those below U+0020 itself.
const CONTROLS = /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** The same JSON, in which no name of a document can move the cursor of whoever prints the file, or fake another line. */
export const printable = (json: string): string =>
  json.replace(CONTROLS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

/**
 * Appends lines to a file, which is made when it is not there. A line is in the file when `write` settles; lines that come together
 * are one write, and control characters are written as escapes. A line of which a part was written is lost, and the next one begins
 * after a line break. `flush` waits until the disk has them.
 *
 * @throws what the file system says, from `write`, `flush` and `close`, as their rejection.
 */
export function fileSink(path: string): AuditSink & { flush(): Promise<void>; close(): Promise<void> } {
  let opened: Promise<FileHandle> | undefined
  let waiting = ''
  let writing: Promise<void> | undefined
  /** Whether what was written ends within a line, which is told to be lost. */
  let isCut = false

  const file = () => {
    opened ??= open(path, 'a', MODE)
    opened.catch(() => {
      opened = undefined
    })
    return opened
  }
  const append = async (handle: FileHandle, text: string) => {
    const bytes = Buffer.from(text)
    // A disk that becomes full takes a part first, and fails then.
    for (let written = 0; written < bytes.length; isCut = bytes[written - 1] !== NEWLINE) {
      written += (await handle.write(bytes, written)).bytesWritten
    }
  }
  const drain = async () => {
    try {
      while (waiting !== '') {
        const text = waiting
        waiting = ''
        await append(await file(), isCut && !text.startsWith('\n') ? `\n${text}` : text)
      }
    } catch (failure) {
      // What came meanwhile is told to be lost as well, so it is not to be there later.
      waiting = ''
      throw failure
    } finally {
      writing = undefined
    }
  }
  return {
    write(line) {
      waiting += `${printable(line)}\n`
      writing ??= Promise.resolve().then(drain)
      return writing
    },
    async flush() {
      await writing
      if (opened !== undefined) await (await opened).datasync()
    },
    async close() {
      await writing
      const handle = await opened
      opened = undefined
      await handle?.close()
    },
  }
}
