import type { Action, Half } from '@sluice/core'
import type { Language } from '../policy-options.ts'
import { javascript, typescript } from './scaffold-js.ts'
import { python } from './scaffold-py.ts'

/** What a new policy is called, and where it is consulted. */
export interface Scaffold {
  /** `no-rm` */
  readonly name: string
  /** `NoRm` */
  readonly type: string
  readonly seam: string
  readonly half: Half
  readonly admits: readonly Action[]
}

/** The files of a new policy, by name, and the commands that go on with it. */
export interface Scaffolded {
  readonly files: Readonly<Record<string, string>>
  /** What makes its program, where that is none of the files. */
  readonly build?: string
  readonly test: string
}

const MAKE: { readonly [L in Language]: (scaffold: Scaffold) => Scaffolded } = {
  js: javascript,
  ts: typescript,
  py: python,
}

export const filesOf = (language: Language, scaffold: Scaffold): Scaffolded => MAKE[language](scaffold)
