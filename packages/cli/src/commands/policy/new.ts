import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Half, SEAM_NAMES, SEAMS, type Seam, SluiceError } from '@sluice/core'
import { EXIT } from '../../exit.ts'
import type { NewFlags } from '../policy-options.ts'
import { makeNamed, writeNamed } from '../write-named.ts'
import { filesOf, type Scaffold } from './scaffold.ts'

const NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/

/** Makes a folder with a policy in it, and says what to do next. */
export async function newPolicy(name: string, { lang, seam, force }: NewFlags): Promise<number> {
  const scaffold = { ...placeOf(seam), name: nameOf(name), type: typeOf(name) }
  const { files, build, test } = filesOf(lang, scaffold)
  const paths = Object.keys(files).map((file) => join(name, file))
  const there = paths.filter((path) => existsSync(path))
  if (there.length > 0 && force !== true)
    throw new SluiceError('CLI_EXISTS', `${there.join(', ')} is there already; --force overwrites it.`, {
      file: there[0] as string,
    })
  await makeNamed(name)
  for (const [file, text] of Object.entries(files)) await writeNamed(join(name, file), text)
  process.stdout.write(`${paths.join('\n')}\n`)
  if (build !== undefined) process.stderr.write(`build it:  ${build}\n`)
  process.stderr.write(`test it:   ${test}\ncheck it:  sluice policy check --plugin ${name}/${name}.json\n`)
  return EXIT.completed
}

function nameOf(name: string): string {
  if (NAME.test(name)) return name
  throw new SluiceError('CLI_FLAGS', `"${name}" is no name of a plugin; take small letters, digits and "-": no-rm.`)
}

const typeOf = (name: string) => name.replace(/(?:^|-)([a-z0-9])/g, (_, first: string) => first.toUpperCase())

function placeOf(text: string): Pick<Scaffold, 'seam' | 'half' | 'admits'> {
  const [seam = '', half = ''] = text.split('.')
  const row = SEAM_NAMES.includes(seam as Seam) ? SEAMS[seam as Seam] : undefined
  const admits = half === 'before' || half === 'after' ? row?.[half] : undefined
  if (admits !== undefined && admits.length > 0) return { seam, half: half as Half, admits }
  const halves = SEAM_NAMES.flatMap((name) =>
    (['before', 'after'] as const).filter((each) => SEAMS[name][each].length > 0).map((each) => `${name}.${each}`),
  )
  throw new SluiceError('CLI_FLAGS', `--seam "${text}" is no half of a seam; halves are: ${halves.join(', ')}.`)
}
