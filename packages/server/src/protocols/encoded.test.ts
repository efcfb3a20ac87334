import { describe, expect, it } from 'vitest'
import { ECHO, PAYING, WAITING_TOOL } from '../testing/documents.ts'
import { framesOf, served } from '../testing/served.ts'

/** Plugins that render the types of events: one as lines, one as an event stream, one that cannot. */
const PLUGIN = `
const component = (componentType, protocol, contentType) => ({ componentType, kind: 'encoder', protocol, contentType })
const encode = ({ event: { type } = {}, type: own }) => [{ event: own ?? type, data: { type: own ?? type } }]
export default {
  manifest: {
    name: 'encoders', version: '1.0.0', capabilities: [],
    components: [
      component('Lines', 'lines', 'text/x-lines'),
      component('Frames', 'frames', 'text/event-stream'),
      component('Broken', 'broken', 'text/event-stream'),
      component('Mine', 'ag-ui', 'text/plain'),
    ],
  },
  handlers: {
    Lines: { encode, finish: () => [{ data: 'over' }] },
    Frames: { encode, finish: () => [{ event: 'over', data: null }] },
    Broken: { encode: ({ type }) => { if (type !== 'run_start') throw new Error('no'); return [] }, finish: () => [] },
    Mine: { encode: () => [], finish: () => [] },
  },
}`

const STREAM = { accept: 'text/event-stream' }
const plugged = () =>
  served({ 'flows/echo.json': ECHO, 'encoders.mjs': PLUGIN }, (at) => ({ plugins: [at('encoders.mjs')] }))
const request = { flow: 'echo', inputs: { said: 'hello' }, thread: 't' }

describe('a protocol that a plugin renders', () => {
  it('streams lines under the content type that the plugin declares (Q12)', async () => {
    const { post } = await plugged()
    const { status, headers, text } = await post('/v1/runs?protocol=lines', request, STREAM)
    expect([status, headers.get('content-type')]).toEqual([200, 'text/x-lines'])
    const lines = text.trimEnd().split('\n')
    expect(lines.slice(0, 2)).toEqual(['{"type":"run_start"}', '{"type":"node_start"}'])
    expect(lines.at(-1)).toBe('over')
  })

  it('streams frames where it declares an event stream', async () => {
    const { post } = await plugged()
    const frames = framesOf((await post('/v1/runs?protocol=frames', request, STREAM)).text)
    expect(frames[0]).toEqual({ event: 'run_start', data: '{"type":"run_start"}' })
    expect(frames.at(-1)).toEqual({ event: 'over', data: 'null' })
  })

  it('is listed, does not take the place of one that is built in, and an unknown one is 400 with the list (Q12)', async () => {
    const { post, get } = await plugged()
    const known = ['sluice', 'ag-ui', 'ai-sdk', 'lines', 'frames', 'broken']
    expect((await get('/v1/capabilities')).body.protocols).toEqual(known)
    expect((await post('/v1/runs?protocol=ag-ui', request, STREAM)).text).toContain('RUN_STARTED')
    const { status, body } = await post('/v1/runs?protocol=other', request, STREAM)
    expect([status, body.error.code]).toEqual([400, 'REQUEST_PROTOCOL'])
    expect(body.error.message).toContain(known.join(', '))
  })

  it('needs a stream (Q12)', async () => {
    const { post } = await plugged()
    const { status, body } = await post('/v1/runs?protocol=lines', request)
    expect([status, body.error.code]).toEqual([400, 'REQUEST_PROTOCOL'])
  })

  it('breaks off where it fails, ends the run, and the operator is told', async () => {
    const faults: string[] = []
    const files = { 'flows/paying.json': PAYING, 'tools/pay': WAITING_TOOL, 'encoders.mjs': PLUGIN }
    const onFault = (error: unknown, at: string) => void faults.push(`${at}: ${(error as Error).message}`)
    const { post, get } = await served(files, (at) => ({ plugins: [at('encoders.mjs')], onFault }))
    const paying = { ...request, flow: 'paying' }
    await expect(post('/v1/runs?protocol=broken', paying, STREAM)).rejects.toThrow('no')
    const [{ run }] = (await get('/v1/threads/t')).body.runs
    expect(faults).toEqual([expect.stringMatching(`^run ${run}: .*no`)])
    expect(framesOf((await get(`/v1/runs/${run}/events`)).text).at(-1)?.data).toContain('RUN_CANCELLED')
  })
})
