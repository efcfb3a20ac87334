import { createServer } from '@sluice/server'
import { describe, expect, it, onTestFinished } from 'vitest'
import { folderOf, sluice } from './testing/command.ts'

describe('sluice token new', () => {
  it('prints a token, and the entry with which a server knows whoever brings it', async () => {
    const { code, stdout, stderr } = await sluice('token', 'new', 'ann', '--scopes', 'run,answer')
    expect(code).toBe(0)
    expect(stderr).toContain('Give the first line to ann')
    const [token = '', entry = ''] = stdout.trimEnd().split('\n')
    const folder = folderOf({ 'tokens.yaml': `principals:\n${entry}\n` })
    const server = await createServer({ tokens: `${folder}/tokens.yaml` })
    onTestFinished(async () => void (await server.close()))
    const statusFor = async (authorization: string) =>
      (await server.app.request('/v1/threads', { headers: { authorization } })).status
    expect([await statusFor(`Bearer ${token}`), await statusFor(`Bearer ${token}x`)]).toEqual([200, 401])
  })

  it.each([
    {
      name: 'a scope that is none',
      args: ['ann', '--scopes', 'run,root'],
      why: 'scopes are: run, answer, read, edit, admin',
    },
    { name: 'an id with a slash', args: ['ann/bob', '--scopes', 'run'], why: 'SERVER_TOKENS' },
    { name: 'a date that is none', args: ['ann', '--scopes', 'run', '--expires', 'soon'], why: 'SERVER_TOKENS' },
    { name: 'no scopes', args: ['ann'], why: '--scopes' },
  ])('makes none for $name', async ({ args, why }) => {
    const { code, stdout, stderr } = await sluice('token', 'new', ...args)
    expect([code === 0, stdout]).toEqual([false, ''])
    expect(stderr).toContain(why)
  })
})

describe('sluice serve does not start', () => {
  it.each([
    {
      name: 'where others can reach it and it asks nobody who they are',
      args: ['--host', '0.0.0.0'],
      why: 'SERVER_OPEN',
    },
    { name: 'without the file of tokens that it is to have', args: ['--tokens', '/none.yaml'], why: 'SERVER_TOKENS' },
    { name: 'with every origin let in', args: ['--cors-origin', '*'], why: 'SERVER_CORS' },
    { name: 'with a rate that is none', args: ['--rate', '100'], why: 'as 100/60' },
  ])('$name', async ({ args, why }) => {
    const { code, stderr } = await sluice('serve', '--port', '0', ...args)
    expect(code).not.toBe(0)
    expect(stderr).toContain(why)
  })
})
