// Serves a flow, runs it over HTTP, answers what it asks, follows it, and asks the server to end; fails when one is not as the docs say.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const at = (path) => fileURLToPath(new URL(path, import.meta.url))
const server = spawn(
  process.execPath,
  [
    at('../../packages/cli/bin/sluice.js'),
    ...['serve', '--flows', at('flows'), '--tools-dir', at('tools'), '--policies', at('sluice.yaml'), '--port', '0'],
  ],
  { stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env.PATH } },
)
const exited = once(server, 'exit')

async function listening() {
  let said = ''
  for await (const part of server.stderr.setEncoding('utf8')) {
    said += part
    const [url] = /http:\/\/\S+/.exec(said) ?? []
    if (url !== undefined) return url
  }
  throw new Error(`the server did not start: ${said}`)
}

const url = await listening()
const call = async (path, body, headers = {}) => {
  const response = await fetch(url + path, {
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    headers: { 'content-type': 'application/json', ...headers },
  })
  const text = await response.text()
  return { status: response.status, text, body: text.startsWith('{') ? JSON.parse(text) : undefined }
}

try {
  const asked = await call('/v1/runs', { flow: 'refund', inputs: { order: '991' }, thread: 'refund-991' })
  assert.equal(asked.status, 202)
  const [ask] = asked.body.asks
  assert.equal(ask.payload.question, 'Pay order 991 back?')
  assert.equal(ask.askedBy, 'policy:AskFirst')

  const wrong = await call(`/v1/asks/${ask.id}/answer`, { answer: 'yes' })
  assert.equal(wrong.status, 422)
  const answered = await call(`/v1/asks/${ask.id}/answer`, { answer: { approved: true } })
  assert.deepEqual([answered.status, answered.body.result], [200, { receipt: 'paid back order 991' }])
  const again = await call(`/v1/asks/${ask.id}/answer`, { answer: { approved: true } })
  assert.deepEqual([again.status, again.body.error.code], [409, 'ASK_ANSWERED'])

  const followed = await call(`/v1/runs/${answered.body.run}/events`)
  assert.match(followed.text, /event: tool_result\nid: \d+\ndata: .*paid back order 991/)
  assert.match(followed.text, /event: run_end\nid: \d+\ndata: .*"status":"completed"/)

  const { middleware } = (await call('/v1/capabilities')).body
  assert.deepEqual(middleware[0].seams, { toolCall: ['before'] })
} finally {
  server.kill('SIGTERM')
}
assert.deepEqual(await exited, [0, null])
console.log('the server runs a flow, asks, goes on once it is answered, and ends when it is asked to')
