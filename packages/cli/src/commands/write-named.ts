import { mkdir, writeFile } from 'node:fs/promises'
import { messageOf, SluiceError } from '@sluice/core'

/** Writes a file that the caller named. @throws SluiceError `CLI_WRITE` when that cannot be done. */
export const writeNamed = (file: string, text: string): Promise<void> => named(file, writeFile(file, text))

/** Makes a folder that the caller named, where there is none. @throws SluiceError `CLI_WRITE` when that cannot be done. */
export async function makeNamed(folder: string): Promise<void> {
  await named(folder, mkdir(folder, { recursive: true }))
}

async function named<Result>(path: string, writing: Promise<Result>): Promise<Result> {
  try {
    return await writing
  } catch (error) {
    throw new SluiceError('CLI_WRITE', `${path} cannot be written: ${messageOf(error)}.`, { file: path })
  }
}
