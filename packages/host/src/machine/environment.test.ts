import { describe, expect, it } from 'vitest'
import { pluginEnvironment } from './environment.ts'

const env = { TOKEN: 'secret', EMPTY: '', OTHER: 'x' }

describe("a plugin's environment", () => {
  it.each([
    { name: 'is empty where nothing is named', named: [], gives: {} },
    { name: 'has the value that this process has', named: ['TOKEN'], gives: { TOKEN: 'secret' } },
    { name: 'or the one that is given', named: ['TOKEN=other', 'NEW=a=b'], gives: { TOKEN: 'other', NEW: 'a=b' } },
    { name: 'may have an empty one', named: ['EMPTY', 'OTHER='], gives: { EMPTY: '', OTHER: '' } },
    { name: 'has several lines of one', named: ['KEY=a\nb'], gives: { KEY: 'a\nb' } },
    { name: 'leaves out what is not set', named: ['NOBODY'], gives: {} },
    { name: 'takes the last of two', named: ['A=1', 'A=2'], gives: { A: '2' } },
  ])('$name', ({ named, gives }) => {
    expect(pluginEnvironment(named, env)).toEqual(gives)
  })

  it.each(['', '=x', '1A', 'A B', 'A-B=1'])('refuses "%s", which names no variable', (named) => {
    expect(() => pluginEnvironment([named], env)).toThrow(
      `--plugin-env ${JSON.stringify(named)} names no variable; write NAME or NAME=value.`,
    )
  })
})
