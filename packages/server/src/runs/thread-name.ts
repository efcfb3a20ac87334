import { SluiceError } from '@sluice/core'

/** What names a thread, and a branch of one. */
export const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/

/** What a thread of this owner is called in the store. Neither part has a slash, so nobody can name a thread of somebody else. */
export const innerName = (owner: string, thread: string): string => (owner === '' ? thread : `${owner}/${thread}`)

/** @throws SluiceError `THREAD_NAME`. */
export function readThreadName(name: string): string {
  if (NAME.test(name)) return name
  throw new SluiceError(
    'THREAD_NAME',
    'a thread is named by up to 128 letters, digits, ".", "_", ":" and "-", a letter or a digit first.',
  )
}
