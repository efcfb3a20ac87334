import { SluiceError } from '@sluice/core'
import { chat } from './chat.ts'
import type { RunFlags } from './run-options.ts'

const NOT_IN_A_CHAT = ['events', 'protocol', 'branch', 'resume', 'answer', 'continue'] as const

/** `sluice run -i`: what `sluice chat` does. @throws SluiceError `CLI_FLAGS` for what makes no sense at a prompt. */
export async function runFlow(file: string, flags: RunFlags): Promise<number> {
  const idle = NOT_IN_A_CHAT.find((name) => flags[name] !== undefined)
  if (idle !== undefined)
    throw new SluiceError('CLI_FLAGS', `--${idle} is not for a conversation; leave it out, or leave -i out.`)
  return chat(file, flags)
}
