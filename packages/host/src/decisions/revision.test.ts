import { join } from 'node:path'
import { type DecisionRecord, policy } from '@sluice/core'
import { describe, expect, it } from 'vitest'
import { folderOf } from '../testing/folder.ts'
import { withRevision } from './revision.ts'

const FILES = { 'one.yaml': 'policies: []', 'other.yaml': 'policies: [] # changed' }

interface InForce {
  readonly file?: string
  readonly version?: string
  readonly component?: object
}

async function revisionOf({ file, component, ...given }: InForce): Promise<string | undefined> {
  const gate = policy({
    name: 'Gate',
    seams: { toolCall: { before: () => ({ action: 'proceed' }) } },
    ...(component && { component: { ...component } }),
    ...given,
  })
  let written: DecisionRecord | undefined
  const write = (record: DecisionRecord) => {
    written = record
  }
  const sink = await withRevision({ write }, [gate], file && join(folderOf(FILES), file))
  await sink.write({ id: '1' } as DecisionRecord)
  return written?.revision
}

describe('the revision of a decision record', () => {
  const inForce = { file: 'one.yaml', version: '1.0.0', component: { max: 1, by: 'day' } }

  it('is the same wherever the same is in force, in whatever order settings are written', async () => {
    const revision = await revisionOf(inForce)
    expect(revision).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(await revisionOf({ ...inForce, component: { by: 'day', max: 1 } })).toBe(revision)
  })

  it('is added on the way into a sink that is an object of a class', async () => {
    class Sink {
      readonly required = true
      readonly #records: DecisionRecord[] = []
      write(record: DecisionRecord): void {
        this.#records.push(record)
      }
      get revisions() {
        return this.#records.map(({ revision }) => revision)
      }
    }
    const sink = new Sink()
    const { write, required } = await withRevision(sink, [], undefined)
    await write({ id: '1' } as DecisionRecord)
    expect([required, sink.revisions]).toEqual([true, [expect.stringMatching(/^sha256:/)]])
  })

  it.each<{ name: string; other: InForce }>([
    { name: 'of another policy file', other: { file: 'other.yaml' } },
    { name: 'without a policy file', other: { file: undefined } },
    { name: 'of another version of a policy', other: { version: '1.0.1' } },
    { name: 'of other settings of a policy', other: { component: { max: 2, by: 'day' } } },
    { name: 'without settings', other: { component: undefined } },
  ])('is another one $name', async ({ other }) => {
    expect(await revisionOf({ ...inForce, ...other })).not.toBe(await revisionOf(inForce))
  })
})
