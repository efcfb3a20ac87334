import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { flowOf, folderOf, type RunningCommand, start, text, toolNode } from './testing/command.ts'
import { describeThreads } from './testing/threads.ts'

const said = [text('said')]
const FLOW = flowOf({
  nodes: { a: toolNode('a', said, said), b: toolNode('b', said, said), c: toolNode('c', said, said) },
  inputs: said,
  outputs: said,
})

/** Has its effect and takes a while to say so; whoever outlives the server, or was told nothing before it died, has none. With a file `hold`, it is done when that is gone. */
const TOOL = `#!/bin/sh
here=$(dirname "$0")
input=$(cat)
[ "$PPID" = "$(cat "$here/pid")" ] && [ -n "$input" ] || exit 1
echo "$(basename "$0") $input" >> "$here/effects"
sleep 0.1
while [ -e "$here/hold" ]; do
  kill -0 "$PPID" 2> /dev/null || exit 1
  sleep 0.02
done
printf '%s' "$input"
`

interface Serving {
  readonly url: string
  readonly running: RunningCommand
}

function siteOf(files: Readonly<Record<string, string>> = {}) {
  const folder = folderOf({ a: TOOL, b: TOOL, c: TOOL, ...files })
  const flows = folderOf({ 'work.json': FLOW })
  const at = (name: string) => join(folder, name)
  return {
    at,
    /** Lines "tool input", one for each effect. */
    effects: () => (existsSync(at('effects')) ? readFileSync(at('effects'), 'utf8').trim().split('\n') : []),
    async serve(...flags: readonly string[]): Promise<Serving> {
      const args = ['serve', '--flows', flows, '--tools-dir', folder, '--store', join(flows, 'runs.db'), '--port', '0']
      const running = start([...args, ...flags])
      onTestFinished(() => running.signal('SIGKILL'))
      await Promise.race([
        running.says('listens at'),
        running.ended.then(({ stderr }) => {
          throw new Error(stderr)
        }),
      ])
      writeFileSync(at('pid'), String(running.pid))
      return { running, url: /listens at (\S+)/.exec(running.stderr())?.[1] ?? '' }
    },
  }
}

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
type Body = any

const JSON_TYPE = { 'content-type': 'application/json' }

async function post(url: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(url, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { ...JSON_TYPE, ...headers },
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Body }
}

async function begin(url: string, input: string): Promise<string> {
  const request = { flow: 'work', inputs: { said: input } }
  const { status, body } = await post(`${url}/v1/runs`, request, { prefer: 'respond-async' })
  expect(status).toBe(202)
  return body.run
}

/** The ids of what a stream sends until it ends or breaks off. */
async function follow(
  url: string,
  run: string,
  after: number,
): Promise<{ readonly ids: number[]; readonly text: string }> {
  let sent = ''
  try {
    const response = await fetch(`${url}/v1/runs/${run}/events`, { headers: { 'last-event-id': String(after) } })
    const decoder = new TextDecoder()
    for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>)
      sent += decoder.decode(bytes, { stream: true })
  } catch {}
  const whole = sent.slice(0, sent.lastIndexOf('\n\n') + 1)
  return { ids: [...whole.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id)), text: sent }
}

async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setTimeout(resolve, 10))
}

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1)

describeThreads('sluice serve that is killed under load and started again', () => {
  it('brings every run that it accepted to its end, and has each effect once, or asks about it', async () => {
    const site = siteOf()
    const one = await site.serve('--max-concurrent', '24')
    const names = upTo(24).map((n) => `r${n}`)
    const runs = await Promise.all(names.map((name) => begin(one.url, name)))
    const followed = runs.slice(0, 4).map((run) => follow(one.url, run, 0))
    await until(() => site.effects().length >= 30)
    one.running.signal('SIGKILL')
    await one.running.ended
    const before = await Promise.all(followed)
    expect(before.map(({ ids }) => ids[0])).toEqual([1, 1, 1, 1])

    const two = await site.serve('--max-concurrent', '24')
    const after = await Promise.all(runs.map((run, i) => follow(two.url, run, before[i]?.ids.at(-1) ?? 0)))
    for (const [i, { ids }] of before.entries()) {
      const all = [...ids, ...(after[i]?.ids ?? [])]
      expect(all).toEqual(upTo(all.length))
    }
    for (const { text: sent } of after) expect(sent.match(/^event: run_end$/gm)).toHaveLength(1)

    const said: string[] = []
    for (const [i, run] of runs.entries()) {
      const name = names[i] as string
      let view = (await (await fetch(`${two.url}/v1/runs/${run}`)).json()) as Body
      while (view.status === 'paused') {
        const [ask] = view.asks
        expect(ask.key).toMatch(/^[abc]:[abc]@engine$/)
        said.push(name)
        const isDone = site.effects().includes(`${ask.nodeName} {"said":"${name}"}`)
        const answer = isDone ? { result: { said: name } } : 'retry'
        view = (await post(`${two.url}/v1/asks/${ask.id}/answer`, { answer })).body
      }
      expect(view).toMatchObject({ status: 'completed', result: { said: name } })
    }
    // Otherwise it was not killed in the middle of anything.
    expect(said.length).toBeGreaterThan(0)
    const expected = names.flatMap((name) => ['a', 'b', 'c'].map((tool) => `${tool} {"said":"${name}"}`))
    expect(site.effects().toSorted()).toEqual(expected.toSorted())
  }, 120_000)
})

describeThreads('sluice serve that is asked to end', () => {
  it('drains, and its runs go on where they are served next (Q6)', async () => {
    const site = siteOf({ hold: '' })
    const one = await site.serve()
    const run = await begin(one.url, 'r')
    const followed = follow(one.url, run, 0)
    const waiting = post(`${one.url}/v1/runs`, { flow: 'work', inputs: { said: 's' } })
    await until(() => site.effects().length === 2)
    one.running.signal('SIGTERM')
    await one.running.says('SIGTERM')
    expect((await fetch(`${one.url}/readyz`)).status).toBe(503)
    expect((await post(`${one.url}/v1/runs`, { flow: 'work', inputs: { said: 'x' } })).status).toBe(503)
    rmSync(site.at('hold'))
    const { status, headers, body } = await waiting
    expect([status, headers.get('retry-after')]).toEqual([503, '5'])
    const before = await followed
    expect(before.text).toMatch(/retry: 3000\n\n$/)
    expect((await one.running.ended).code).toBe(0)
    expect(site.effects()).toHaveLength(2)

    const two = await site.serve()
    const after = await follow(two.url, run, before.ids.at(-1) ?? 0)
    expect([...before.ids, ...after.ids]).toEqual(upTo(before.ids.length + after.ids.length))
    const other = body.error.run
    await follow(two.url, other, 0)
    for (const [id, name] of [
      [run, 'r'],
      [other, 's'],
    ])
      expect(await (await fetch(`${two.url}/v1/runs/${id}`)).json()).toMatchObject({
        status: 'completed',
        result: { said: name },
      })
    expect(site.effects()).toHaveLength(6)
  }, 60_000)

  it.each([
    { how: 'at a second signal, of whichever name', flags: [], signals: ['SIGTERM', 'SIGINT'] as const, says: '' },
    {
      how: 'when --drain-timeout is over',
      flags: ['--drain-timeout', '0.2'],
      signals: ['SIGTERM'] as const,
      says: '0.2 s go on',
    },
  ])('does not wait for ever: $how', async ({ flags, signals, says }) => {
    const site = siteOf({ hold: '' })
    const one = await site.serve(...flags)
    await begin(one.url, 'r')
    await until(() => site.effects().length === 1)
    for (const signal of signals) {
      one.running.signal(signal)
      await one.running.says('SIGTERM')
    }
    const { code, stderr } = await one.running.ended
    expect(code).toBe(1)
    expect(stderr).toContain(says)
  })
})

describeThreads('sluice serve --allow-request-code', () => {
  const shout = { name: 'shout', source: '#!/bin/sh\ntr a-z A-Z\n' }
  const nodes = { shout: toolNode('shout', [], []) }
  const request = { flow: flowOf({ nodes, outputs: [] }), tools: [shout] }

  it('runs code of requests below --work-dir, and leaves nothing there', async () => {
    const work = folderOf({})
    const { url, running } = await siteOf().serve('--allow-request-code', '--work-dir', work)
    const { status, body } = await post(`${url}/v1/runs`, request)
    expect([status, body.status]).toEqual([200, 'completed'])
    expect(readdirSync(work)).toHaveLength(1)
    running.signal('SIGTERM')
    expect((await running.ended).code).toBe(0)
    expect(readdirSync(work)).toEqual([])
  })

  it('is off by default', async () => {
    const { url } = await siteOf().serve()
    const { status, body } = await post(`${url}/v1/runs`, request)
    expect([status, body.error.code]).toEqual([400, 'REQUEST_CODE'])
  })

  it('takes its limits from flags', async () => {
    const { url } = await siteOf().serve('--allow-request-code', '--max-request-code-bytes', '5')
    const { status, body } = await post(`${url}/v1/runs`, request)
    expect([status, body.error.code]).toEqual([400, 'CODE_INVALID'])
  })
})
