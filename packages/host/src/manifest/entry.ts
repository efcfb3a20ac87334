import { access, constants, open, realpath, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, relative, resolve } from 'node:path'
import type { Faults } from './faults.ts'

/** How a plugin's process is started; `undefined` when there is nothing to start, which is a fault. */
export async function startOf(
  { file, folder, command }: { file: string; folder: string; command: readonly string[] | undefined },
  runtime: () => string,
  faults: Faults,
): Promise<readonly string[] | undefined> {
  if (command !== undefined) return [await programPath(command[0] ?? '', folder), ...command.slice(1)]
  for (const extension of ['.mjs', '.js']) {
    const entry = file.replace(/\.json$/, extension)
    if (!(await isFile(entry))) continue
    return (await startsItself(entry)) ? [entry] : [process.execPath, '--import', runtime(), entry]
  }
  const name = file.slice(folder.length + 1).replace(/\.json$/, '')
  const source = (await isFile(`${folder}/${name}.mts`)) ? `${name}.mts has to be built first; or ` : ''
  const mend = `${source}put ${name}.mjs or ${name}.js beside it, or name one in "command"`
  faults.add('', `there is no program to start: ${mend}`)
  return undefined
}

/** Executable, and it says by what: an execute bit alone comes with many a copy and mount. */
async function startsItself(entry: string): Promise<boolean> {
  if (!(await isExecutable(entry))) return false
  const file = await open(entry)
  try {
    const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0)
    return buffer.toString() === '#!'
  } finally {
    await file.close()
  }
}

/** A plugin has no PATH, so a bare name is looked up on the host's; one with a slash belongs to the manifest's folder. */
async function programPath(name: string, folder: string): Promise<string> {
  if (name.includes('/')) return resolve(folder, name)
  if (name === 'node') return process.execPath
  for (const place of (process.env.PATH ?? '').split(delimiter)) {
    if (place !== '' && (await isFile(join(place, name))) && (await isExecutable(join(place, name))))
      return join(place, name)
  }
  return name
}

/** Checks a tool's `path`, and makes it absolute. */
export async function toolProgram(path: string, folder: string, at: string, faults: Faults): Promise<string> {
  const file = resolve(folder, path)
  if (isOutside(folder, file)) faults.add(at, `is "${path}", which leaves the manifest's folder`)
  else if (!(await exists(file))) faults.add(at, `is "${path}", which does not exist`)
  else if (isOutside(await realpath(folder), await realpath(file))) {
    faults.add(at, `is "${path}", a link that leaves the manifest's folder`)
  } else if (!(await isFile(file))) faults.add(at, `is "${path}", which is no file`)
  else if (!(await isExecutable(file))) faults.add(at, `is "${path}", which is not executable; chmod +x it`)
  return file
}

function isOutside(folder: string, file: string): boolean {
  const way = relative(folder, file)
  return way === '..' || way.startsWith('../') || isAbsolute(way)
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )

export const isFile = (path: string) =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  )

export const isExecutable = (path: string) =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
