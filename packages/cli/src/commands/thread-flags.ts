import { randomUUID } from 'node:crypto'
import { type Json, MAIN, SluiceError } from '@sluice/core'
import { type StoreFile, storeFile } from '../store/file.ts'
import { readAnswers } from './answers.ts'
import type { RunFlags } from './run-options.ts'

/** The thread that a run goes on, and how it takes it up. */
export interface OnThread {
  readonly thread: string
  readonly branch: string
  /** Whether nobody has named it. */
  readonly isNew: boolean
  readonly store: StoreFile
  /** `question`: it was to be answered, and no answer is given. */
  readonly taking: 'start' | 'continue' | 'question' | { readonly answers: Json | ReadonlyMap<string, Json> }
}

const NEED_THREAD = ['branch', 'resume', 'answer', 'continue', 'store'] as const

/**
 * What the flags say of a thread.
 *
 * @throws SluiceError `CLI_FLAGS` for flags that do not go together, `CLI_ANSWER` for an answer that cannot be read.
 */
export function readThreadFlags(flags: RunFlags): OnThread {
  const { thread, branch = MAIN, answer, store } = flags
  if (thread === undefined) {
    const idle = NEED_THREAD.find((name) => flags[name] !== undefined)
    throw refuse(`--${idle} needs a thread; name it with --thread <id>`)
  }
  const kind = kindOf(flags)
  if (kind !== 'start' && thread === true)
    throw refuse(`--${kind} needs the id of the thread; name it with --thread <id>`)
  if (kind !== 'start' && flags.input !== undefined)
    throw refuse(`--${kind} goes on with what the thread was given; leave --input out, or leave --${kind} out`)
  if (kind !== 'resume' && answer !== undefined)
    throw refuse('--answer answers what a thread asks; give --resume with it')
  return {
    thread: thread === true ? randomUUID() : thread,
    branch,
    isNew: thread === true,
    store: storeFile(store),
    taking: kind !== 'resume' ? kind : answer === undefined ? 'question' : { answers: readAnswers(answer) },
  }
}

function kindOf({ resume = false, continue: goOn = false }: RunFlags): 'start' | 'resume' | 'continue' {
  if (resume && goOn)
    throw refuse('--resume answers a paused thread and --continue goes on after a failure; give one of them')
  return resume ? 'resume' : goOn ? 'continue' : 'start'
}

const refuse = (why: string) => new SluiceError('CLI_FLAGS', `${why}.`)
