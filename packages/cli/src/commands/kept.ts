import { MAIN, type RunEvent, SluiceError, type Store, type StreamOptions } from '@sluice/core'
import { EXIT } from '../exit.ts'
import { printError } from '../render/error.ts'
import { jsonText } from '../render/escape.ts'
import { requireFile } from '../store/file.ts'
import { storeWhenUsed } from '../store/open.ts'
import { callWords } from './again.ts'
import { printsEvents } from './printed.ts'
import type { RunFlags } from './run-options.ts'
import type { Shown } from './shown.ts'
import { type OnThread, readThreadFlags } from './thread-flags.ts'
import { wayOn } from './way-on.ts'

type End = RunEvent & { type: 'run_end' }

/** Refusals that the thread's own next step mends. */
const MENDED_BY_WAY_ON = [
  'THREAD_PAUSED',
  'THREAD_NOT_PAUSED',
  'ASK_UNKNOWN',
  'ASK_EXPIRED',
  'ANSWER_AMBIGUOUS',
  'ANSWER_INVALID',
]

/** A run that is kept on a thread, as far as that changes what the command does. */
export class Kept {
  readonly store: Store
  readonly #on: OnThread
  /** The flow and its flags, as words for a shell. */
  readonly #call: readonly string[]

  /**
   * @throws SluiceError `CLI_FLAGS` and `CLI_ANSWER` for flags that are wrong, `CLI_STORE` where there is no store, and the thread
   *   should be there already.
   */
  constructor(file: string, flags: RunFlags) {
    const on = readThreadFlags(flags)
    if (on.taking !== 'start') requireFile(on.store)
    this.store = storeWhenUsed(on.store)
    this.#on = on
    this.#call = callWords(file, flags)
  }

  /** Whether it begins a turn, and so takes an input. */
  get starts(): boolean {
    return this.#on.taking === 'start'
  }

  /** Whether it is to be answered, and no answer is given. */
  get lacksAnswer(): boolean {
    return this.#on.taking === 'question'
  }

  get options(): Pick<StreamOptions, 'thread' | 'branch' | 'resume' | 'continue'> {
    const { thread, branch, taking } = this.#on
    if (typeof taking === 'object') return { thread, branch, resume: taking.answers }
    return taking === 'continue' ? { thread, branch, continue: true } : { thread, branch }
  }

  /** What was not named is told: it has to be known next time. */
  announce(shown: Shown): void {
    const { isNew, store, thread } = this.#on
    if (!store.named) shown.line(`· threads are kept in ${store.path}; --store names another file`)
    if (isNew) shown.line(`· thread ${thread}`)
  }

  /** That no answer is given is refused with the question. */
  async refuseWithQuestion(): Promise<number> {
    printError(new SluiceError('CLI_ANSWER', '--resume answers what the thread asks; give --answer with it.'))
    await this.#sayWayOn()
    return EXIT.wrong
  }

  /** A run that was refused before it began. */
  async refused({ error }: End): Promise<number> {
    const { code, message = '' } = error ?? {}
    const exit = printError(code === undefined ? new Error(message) : new SluiceError(code, message))
    if (code !== undefined && MENDED_BY_WAY_ON.includes(code)) await this.#sayWayOn()
    return exit
  }

  async ended({ status, asks }: End, flags: RunFlags): Promise<void> {
    const { thread, branch } = this.#on
    if (status === 'paused' && !printsEvents(flags)) {
      const result = { status, thread, ...(branch === MAIN ? {} : { branch }), asks }
      process.stdout.write(`${jsonText(result)}\n`)
    }
    if (status !== 'completed') await this.#sayWayOn()
  }

  async #sayWayOn(): Promise<void> {
    for (const line of await this.#wayOn()) process.stderr.write(`${line}\n`)
  }

  /** A store that cannot be read any more has been told already. */
  async #wayOn(): Promise<readonly string[]> {
    try {
      return await wayOn(this.store, this.#on, this.#call, Date.now())
    } catch {
      return []
    }
  }
}
