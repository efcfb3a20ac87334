import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { flagWords, shellWord } from './shell.ts'

/** The words that a shell makes of a command line. */
const readBack = (shell: string, line: string) =>
  spawnSync(shell, ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8' })
    .stdout.split('\0')
    .slice(0, -1)

const has = (shell: string) => spawnSync(shell, ['-c', ':']).status === 0

describe('a word for a shell', () => {
  it.each(['flow.yaml', '--thread', 'a/b-c_1:2@x', 'Type=@file'])('stands as it is where it may: %s', (word) =>
    expect(shellWord(word)).toBe(word),
  )

  it
    .runIf(has('sh'))
    .each([
      'two words',
      "it's",
      '$HOME `date` $(date)',
      'a"b\\c',
      '{"a":[1,2]}',
      '~/x*',
      '',
      '=x',
      'node:q=…',
      '#x',
      '!x',
    ])('is read back by sh: %s', (word) => expect(readBack('sh', shellWord(word))).toEqual([word]))

  it.runIf(has('bash')).each(['\u001b[2J', 'two\nlines', "\u202e'\\"])(
    'is safe to print and read back by bash, with control characters: %j',
    (word) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
      expect(shellWord(word)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/)
      expect(readBack('bash', shellWord(word))).toEqual([word])
    },
  )

  it('that would be read as a flag is joined to its own', () => {
    expect(flagWords('--thread', '-x')).toEqual(['--thread=-x'])
    expect(flagWords('--thread', 'x')).toEqual(['--thread', 'x'])
  })
})
