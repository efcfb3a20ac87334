import { join } from 'node:path'
import { expect, it } from 'vitest'
import { flowOf, folderOf, policyManifest, sluice, text, toolNode } from './testing/command.ts'
import { describeThreads, HELLO, program, type Site, siteOf } from './testing/threads.ts'

const said = [text('said')]
const schema = { type: 'object', properties: { paid: { type: 'integer', default: 0 } } }

/** A flow that pays, and a policy that lets each principal pay twice. */
function paying(): Site {
  const folder = folderOf({
    'flow.json': flowOf({ nodes: { pay: toolNode('pay', said, said) }, inputs: said, outputs: said }),
    pay: program(),
    'twice.json': policyManifest('Twice', { toolCall: ['before'] }, { kept: { scope: 'principal', schema } }),
    'twice.mjs': `serve({ Twice: { toolCall: { before(_shown, ctx) {
      if (ctx.revisit) return { action: 'proceed' }
      if (ctx.kept.value.paid === 2) return { action: 'reject', reason: 'twice is enough' }
      ctx.kept.update(({ paid }) => ({ paid: paid + 1 }))
      return { action: 'proceed' }
    } } } })`,
  })
  return siteOf(folder, ['--plugin', join(folder, 'twice.json')])
}

describeThreads('a run under a policy that keeps by principal', () => {
  it('is refused where nobody says for whom it is', async () => {
    const { code, stderr } = await paying().run(...HELLO, '--thread', 't')
    expect([code, stderr]).toEqual([2, expect.stringContaining('KEPT_PRINCIPAL')])
    expect(stderr).toContain('policy "Twice" keeps by principal')
  })

  it('counts whom --principal names, on threads and without, until the operator removes what is kept', async () => {
    const site = paying()
    const pays = async (principal: string, ...flags: readonly string[]) =>
      (await site.run(...HELLO, '--principal', principal, ...flags)).code
    expect([await pays('ann'), await pays('ann', '--thread', 't'), await pays('ann')]).toEqual([0, 0, 1])
    expect(await pays('bob')).toBe(0)
    expect((await site.sluice('kept', 'ls')).stdout).toBe('ann  Twice  {"paid":2}\nbob  Twice  {"paid":1}\n')
    const { stdout } = await site.sluice('kept', 'ls', 'bob', '--json')
    expect(JSON.parse(stdout)).toEqual([{ principal: 'bob', by: 'Twice', value: { paid: 1 } }])
    const removes = async (...args: readonly string[]) => (await site.sluice('kept', 'rm', 'ann', ...args)).code
    expect([await removes('--policy', 'Other'), await removes(), await removes()]).toEqual([1, 0, 1])
    expect(await pays('ann')).toBe(0)
  }, 60_000)

  it('is shown by explain', async () => {
    const { folder } = paying()
    const { stdout } = await sluice('policy', 'explain', '--plugin', join(folder, 'twice.json'))
    expect(stdout).toContain('keeps by principal')
  })
})
