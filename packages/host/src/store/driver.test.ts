import { describe, expect, it, onTestFinished } from 'vitest'
import { findDriver } from './driver.ts'

class Fake {
  close() {}
}

/** Node's warnings while `work` runs. */
function warningsOf(work: () => unknown): readonly string[] {
  const { emitWarning } = process
  const warnings: string[] = []
  process.emitWarning = ((warning: string) => warnings.push(warning)) as typeof emitWarning
  onTestFinished(() => {
    process.emitWarning = emitWarning
  })
  work()
  return warnings
}

describe('the driver of a SQLite store', () => {
  it("is Node's own where there is one", () => {
    const asked: string[] = []
    const require = (name: string) => {
      asked.push(name)
      return { DatabaseSync: Fake }
    }
    expect(findDriver({ isBuiltin: () => true, require })).toBe(Fake)
    expect(asked).toEqual(['node:sqlite'])
  })

  it('is loaded without the warning that it is experimental, and no other is lost', () => {
    const require = () => {
      process.emitWarning('SQLite is an experimental feature and might change at any time', 'ExperimentalWarning')
      process.emitWarning('something else', 'ExperimentalWarning')
      return { DatabaseSync: Fake }
    }
    const warnings = warningsOf(() => {
      findDriver({ isBuiltin: () => true, require })
      process.emitWarning('SQLite is an experimental feature, says somebody later')
    })
    expect(warnings).toEqual(['something else', 'SQLite is an experimental feature, says somebody later'])
  })

  it('is the package better-sqlite3 elsewhere', () => {
    expect(findDriver({ isBuiltin: () => false, require: () => Fake })).toBe(Fake)
  })

  it.each([
    {
      name: 'the package is not installed',
      require: () => {
        throw new Error("Cannot find module 'better-sqlite3'")
      },
    },
    {
      name: 'it was never built, or for another Node',
      require: () =>
        class {
          constructor() {
            throw new Error('Could not locate the bindings file')
          }
        },
    },
  ])('is missing when $name: the error says what to install', ({ require }) => {
    const find = () => findDriver({ isBuiltin: () => false, require })
    expect(find).toThrow(expect.objectContaining({ code: 'STORE_DRIVER_MISSING', cause: expect.any(Error) }))
    expect(find).toThrow(/Node 22\.13 or later.*npm install better-sqlite3/)
  })
})
