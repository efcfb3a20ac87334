import { expect, it } from 'vitest'
import { generatedPages } from './generate-docs.mjs'

it('the pages show the tables of core, and the golden table, as they are', async () => {
  for (const { page, current, text, parts } of await generatedPages()) {
    expect([page, current]).toEqual([page, text])
    for (const part of parts) expect(text).toContain(`<!-- generated: ${part} -->`)
  }
})
