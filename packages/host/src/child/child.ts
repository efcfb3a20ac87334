import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'

/** Milliseconds that output may still arrive after a program has exited; then its pipes are held by somebody else. */
const LAST_OUTPUT_MS = 500

export interface Program {
  /** File and arguments. */
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface Ending {
  readonly code: number | null
  readonly signal: string | null
  /** Why it could not be started. */
  readonly error?: Error
}

const live = new Set<Child>()

/** Programs started here that have not ended. */
export const liveChildren = (): number => live.size

/**
 * A program at the head of a process group of its own, so that whatever it starts ends with it: the group is killed when the
 * program exits, when it is killed, and when this process exits.
 */
export class Child {
  readonly process: ChildProcessWithoutNullStreams
  /** Resolves once it has exited and its output was read. */
  readonly ended: Promise<Ending>
  #exited = false

  constructor({ command: [file = '', ...args], cwd, env }: Program) {
    this.process = spawn(file, args, { cwd, env, stdio: 'pipe', detached: true })
    if (live.size === 0) process.once('exit', killAll)
    live.add(this)
    // A program that does not read, or is gone: that it ended is what counts.
    this.process.stdin.on('error', () => {})
    this.ended = this.#ending()
  }

  get exited(): boolean {
    return this.#exited
  }

  /** Signals the whole group. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    const { pid } = this.process
    if (pid === undefined) return
    try {
      process.kill(-pid, signal)
    } catch {
      // Nobody is left in it.
    }
  }

  #ending(): Promise<Ending> {
    return new Promise<Ending>((resolve) => {
      const end = (ending: Ending) => {
        this.#exited = true
        live.delete(this)
        if (live.size === 0) process.off('exit', killAll)
        resolve(ending)
      }
      this.process.once('error', (error) => {
        if (this.process.pid === undefined) end({ code: null, signal: null, error })
      })
      this.process.once('exit', (code, signal) => {
        this.#exited = true
        this.kill('SIGKILL')
        const held = setTimeout(end, LAST_OUTPUT_MS, { code, signal })
        this.process.once('close', () => {
          clearTimeout(held)
          end({ code, signal })
        })
      })
    })
  }
}

function killAll(): void {
  for (const child of live) child.kill('SIGKILL')
}
