import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, LookupFunction } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Egress } from './egress.ts'

const closed = { code: 'MODEL_ADDRESS', message: expect.stringContaining('must be at a public address') }

/** A server on this machine that counts what it is asked. */
async function listening(answer: RequestListener = (_, response) => response.end('{}')) {
  const asked: (string | undefined)[] = []
  const server = createServer((request, response) => {
    asked.push(request.url)
    answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { asked, port: (server.address() as AddressInfo).port }
}

/** Names of a network of its own. */
const names = (of: Readonly<Record<string, readonly string[]>>): LookupFunction =>
  ((name: string, _options: unknown, done: (error: Error | null, found?: unknown) => void) => {
    const found = of[name]?.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    if (found === undefined) done(Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' }))
    else done(null, found)
  }) as LookupFunction

describe('the way out for a document that came with a request', () => {
  it.each([
    'http://127.0.0.1',
    'http://127.0.0.1:8000/v1',
    'https://127.1',
    'http://0',
    'http://0.0.0.0',
    'http://0.1.2.3',
    'http://2130706433',
    'http://017700000001',
    'http://0x7f000001',
    'http://0x7f.0.0.1',
    'http://0177.0.0.1',
    'http://127.0.0.1.',
    'http://%31%32%37.0.0.1',
    'http://①②⑦.⓪.⓪.①',
    'http://127。0。0。1',
    'http://someone@127.0.0.1',
    'http://api.openai.com@127.0.0.1',
    'http://127.0.0.1\\@api.openai.com',
    'http://localhost',
    'http://LOCALHOST:1',
    'http://localhost.',
    'http://api.localhost',
    'http://a.b.localhost.',
    'http://10.0.0.1',
    'http://172.16.0.1',
    'http://172.31.255.255',
    'http://192.168.1.1',
    'http://100.64.0.1',
    'http://100.127.255.255',
    'http://169.254.169.254/latest/meta-data',
    'http://192.0.0.192',
    'http://198.18.0.1',
    'http://224.0.0.1',
    'http://255.255.255.255',
    'http://[::]',
    'http://[::1]',
    'http://[0:0:0:0:0:0:0:1]',
    'http://[::127.0.0.1]',
    'http://[::ffff:127.0.0.1]',
    'http://[::ffff:7f00:1]',
    'http://[::ffff:0:127.0.0.1]',
    'http://[::ffff:10.0.0.1]',
    'http://[64:ff9b::127.0.0.1]',
    'http://[64:ff9b:1::a00:1]',
    'http://[2002:7f00:1::]',
    'http://[2001::1]',
    'http://[fe80::1]',
    'http://[fec0::1]',
    'http://[fc00::1]',
    'http://[fd00:ec2::254]',
    'http://[ff02::1]',
  ])('does not lead to %s (Z20, O6)', (url) =>
    expect(() => new Egress().check(new URL(url))).toThrow(expect.objectContaining(closed)),
  )

  it.each([
    'https://api.openai.com/v1',
    'http://8.8.8.8',
    'http://172.32.0.1',
    'http://100.63.255.255',
    'http://100.128.0.1',
    'http://[2606:4700::1111]',
    'https://localhost.example.org',
  ])('leads to %s', (url) => expect(() => new Egress().check(new URL(url))).not.toThrow())

  it.each(['file:///etc/passwd', 'ftp://example.org', 'gopher://example.org'])('does not speak as %s', (url) => {
    expect(() => new Egress().check(new URL(url))).toThrow(/by http or https only/)
  })

  it.each([
    { name: 'loopback', addresses: ['127.0.0.1'] },
    { name: 'loopback, mapped into IPv6', addresses: ['::ffff:127.0.0.1'] },
    { name: 'a private address of IPv6', addresses: ['fd00::1', '::1'] },
    { name: 'the address of a cloud’s metadata', addresses: ['169.254.169.254'] },
  ])('does not lead to a name that stands for $name when it is connected to', async ({ addresses }) => {
    const { asked, port } = await listening()
    const egress = new Egress([], names({ 'rebound.example': addresses }))
    const url = `http://rebound.example:${port}/v1`
    expect(() => egress.check(new URL(url))).not.toThrow()
    await expect(egress.fetch(url)).rejects.toMatchObject(closed)
    expect(asked).toEqual([])
  })

  it('looks a name up for each connection, and goes where it looked: another answer later helps nobody', async () => {
    const { asked, port } = await listening()
    const answers = [['127.0.0.1'], ['10.0.0.1']]
    const looked: string[] = []
    const turning = ((name: string, options: object, done: Parameters<LookupFunction>[2]) => {
      looked.push(name)
      names({ [name]: answers.shift() ?? [] })(name, options, done)
    }) as LookupFunction
    const egress = new Egress([`127.0.0.1:${port}`], turning)
    const url = `http://turning.example:${port}/`
    expect((await egress.fetch(url)).status).toBe(200)
    await expect(egress.fetch(url)).rejects.toMatchObject(closed)
    expect(looked).toEqual(['turning.example', 'turning.example'])
    expect(asked).toEqual(['/'])
  })

  it('says of a name that nobody has what it says of one that is closed: who is in this network is not told', async () => {
    const egress = new Egress([], names({ 'db.internal': ['10.0.0.7'] }))
    const said = (url: string) => egress.fetch(url).catch(({ code, message }) => ({ code, message }))
    expect(await said('http://db.internal/')).toEqual(await said('http://nobody.internal/'))
  })

  it('follows no redirect', async () => {
    const { asked, port } = await listening((_, response) => response.writeHead(302, { location: '/secret' }).end())
    await expect(new Egress([`127.0.0.1:${port}`]).fetch(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({
      code: 'MODEL_ADDRESS',
      message: expect.stringContaining('redirect'),
    })
    expect(asked).toEqual(['/'])
  })

  it('sends what it is given and hands on what comes back, as it comes', async () => {
    const { port } = await listening((request, response) => {
      response.writeHead(429, { 'retry-after': '3', 'x-seen': request.headers.authorization })
      request.pipe(response)
    })
    const response = await new Egress(['127.0.0.1']).fetch(`http://127.0.0.1:${port}/v1`, {
      method: 'POST',
      headers: { authorization: 'Bearer k' },
      body: '{"a":"ü"}',
    })
    expect([response.status, response.statusText]).toEqual([429, 'Too Many Requests'])
    expect(response.headers.get('retry-after')).toBe('3')
    expect(response.headers.get('x-seen')).toBe('Bearer k')
    expect(await response.text()).toBe('{"a":"ü"}')
  })

  it('ends with its signal, before the answer and in the middle of it', async () => {
    const { asked, port } = await listening((request, response) => {
      if (request.url === '/half') response.write('half')
    })
    const egress = new Egress(['127.0.0.1'])
    const [silent, half] = [new AbortController(), new AbortController()]
    const waiting = egress.fetch(`http://127.0.0.1:${port}/`, { signal: silent.signal })
    await expect.poll(() => asked.length, { timeout: 10_000 }).toBe(1)
    silent.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    const response = await egress.fetch(`http://127.0.0.1:${port}/half`, { signal: half.signal })
    half.abort()
    await expect(response.text()).rejects.toThrow()
  })

  it('does not read an answer that has no end', async () => {
    const { port } = await listening((_, response) => {
      const more = () => {
        while (response.write('x'.repeat(2 ** 20)));
      }
      response.on('drain', more)
      more()
    })
    const response = await new Egress(['127.0.0.1']).fetch(`http://127.0.0.1:${port}/`)
    await expect(response.text()).rejects.toThrow(/longer than/)
  })

  it('is no way for a server that is not there to be taken for anything else', async () => {
    await expect(new Egress(['127.0.0.1']).fetch('http://127.0.0.1:1/')).rejects.toMatchObject({
      message: 'fetch failed',
      cause: { code: 'ECONNREFUSED' },
    })
  })
})

describe('a host that the operator has opened', () => {
  it.each([
    { opens: '127.0.0.1:8000', url: 'http://2130706433:8000' },
    { opens: '127.0.0.1', url: 'http://127.0.0.1:1' },
    { opens: '127.1', url: 'http://127.0.0.1' },
    { opens: 'localhost:8000', url: 'http://LOCALHOST.:8000' },
    { opens: '::1', url: 'http://[::1]:9' },
    { opens: '[::1]:9', url: 'http://[0:0::1]:9' },
    { opens: '10.0.0.1:80', url: 'http://10.0.0.1' },
    { opens: '10.0.0.1:443', url: 'https://10.0.0.1/v1' },
  ])('however it is spelled: $opens, $url', ({ opens, url }) =>
    expect(() => new Egress([opens]).check(new URL(url))).not.toThrow(),
  )

  it.each([
    { opens: '127.0.0.1:8000', url: 'http://127.0.0.1:8001' },
    { opens: '10.0.0.1:80', url: 'https://10.0.0.1' },
    { opens: '10.0.0.1', url: 'http://10.0.0.2' },
    { opens: 'localhost', url: 'http://127.0.0.1' },
    { opens: '[::1]:9', url: 'http://[::1]:90' },
  ])('opens no other: $opens, $url', ({ opens, url }) =>
    expect(() => new Egress([opens]).check(new URL(url))).toThrow(expect.objectContaining(closed)),
  )

  it('is opened by its name, or by the address that the name stands for', async () => {
    const { asked, port } = await listening()
    const lookup = names({ 'gpu.internal': ['127.0.0.1'] })
    for (const opens of ['gpu.internal', `127.0.0.1:${port}`])
      expect((await new Egress([opens], lookup).fetch(`http://gpu.internal:${port}/`)).status).toBe(200)
    expect(asked).toHaveLength(2)
  })

  it.each(['', 'http://gpu', 'gpu/v1', 'a b', 'user@gpu', 'gpu:port', 'gpu:70000', '[::1'])(
    'is refused where it is none: "%s"',
    (opens) => expect(() => new Egress([opens])).toThrow(expect.objectContaining({ code: 'ALLOW_NET' })),
  )
})
