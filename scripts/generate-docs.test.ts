import { expect, it } from 'vitest'
import { seamsPage } from './generate-docs.mjs'

it('docs/seams.md shows the seam table and the golden table as they are', async () => {
  const { current, text, parts } = await seamsPage()
  expect(current).toBe(text)
  for (const part of parts) expect(text).toContain(`<!-- generated: ${part} -->`)
})
