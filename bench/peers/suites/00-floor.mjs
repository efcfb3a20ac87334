// Physical and language-level floors, measured in the same run as the peers.
import { spawn } from 'node:child_process'
import { closeSync, fdatasyncSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { tenMessages } from '../lib/fixtures.mjs'

export const meta = { subject: 'floor', packages: ['better-sqlite3'] }

const dir = mkdtempSync(join(tmpdir(), 'bench-floor-'))
export const close = () => rmSync(dir, { recursive: true, force: true })

const checkpoint = {
  id: 'c',
  thread: 't',
  step: 1,
  values: { messages: tenMessages() },
  versions: { messages: 10 },
  next: ['agent'],
}
const checkpointText = JSON.stringify(checkpoint)

// A policy child that answers every line with a verdict.
const CHILD = `
let buf='';
process.stdin.setEncoding('utf8');
process.stdin.on('data',d=>{buf+=d;let out='';let i;while((i=buf.indexOf('\\n'))>=0){const m=JSON.parse(buf.slice(0,i));buf=buf.slice(i+1);out+=JSON.stringify({id:m.id,verdict:'proceed'})+'\\n';}if(out)process.stdout.write(out);});
`
const request = {
  hook: 'tool.before',
  run: 'r-1',
  node: 'tools',
  tool: { name: 'lookup', args: { q: 'weather in a city', limit: 5 } },
}

function ndjsonClient(readable, writable) {
  let buf = ''
  let seq = 0
  const waiting = new Map()
  readable.setEncoding('utf8')
  readable.on('data', (d) => {
    buf += d
    for (let i = buf.indexOf('\n'); i >= 0; i = buf.indexOf('\n')) {
      const m = JSON.parse(buf.slice(0, i))
      buf = buf.slice(i + 1)
      const done = waiting.get(m.id)
      waiting.delete(m.id)
      done(m)
    }
  })
  return (body) =>
    new Promise((res) => {
      const id = ++seq
      waiting.set(id, res)
      writable.write(`${JSON.stringify({ id, ...body })}\n`)
    })
}

async function rtt(call, n, warm = 500) {
  for (let i = 0; i < warm; i++) await call(request)
  const t = []
  for (let i = 0; i < n; i++) {
    const a = performance.now()
    await call(request)
    t.push((performance.now() - a) * 1000)
  }
  t.sort((a, b) => a - b)
  return {
    value: t[n >> 1],
    best: t[0],
    p90: t[Math.floor(n * 0.9)],
    unit: 'us',
    extra: { p99: t[Math.floor(n * 0.99)] },
    samples: n,
  }
}

async function pipelined(call, n, depth) {
  await rtt(call, 1, 500)
  const t0 = performance.now()
  let sent = 0
  await Promise.all(
    Array.from({ length: depth }, async () => {
      while (sent < n) {
        sent++
        await call(request)
      }
    }),
  )
  return { value: n / ((performance.now() - t0) / 1000), unit: 'req/s', samples: n }
}

export async function cases() {
  return [
    {
      id: 'bare async loop',
      group: 'loop 1000 steps',
      unit: 'us',
      ops: 1000,
      samples: 51,
      warmup: 20,
      note: 'await fn + merge',
      fn: async () => {
        let state = { n: 0 }
        const node = async (s) => ({ n: s.n + 1 })
        while (state.n < 1000) state = { ...state, ...(await node(state)) }
      },
    },
    {
      id: 'bare loop + stringify',
      group: 'loop 1000 steps',
      unit: 'us',
      ops: 1000,
      samples: 21,
      warmup: 5,
      note: 'in-memory checkpoint',
      fn: async () => {
        let state = { n: 0 }
        const node = async (s) => ({ n: s.n + 1 })
        const kept = []
        while (state.n < 1000) {
          state = { ...state, ...(await node(state)) }
          kept.push(JSON.stringify({ id: kept.length, values: state, next: ['a'] }))
        }
      },
    },
    {
      id: 'Promise.all 1000 tasks',
      group: 'fan-out',
      unit: 'us',
      ops: 1000,
      samples: 51,
      warmup: 20,
      note: 'per task',
      fn: async () => {
        const r = await Promise.all(Array.from({ length: 1000 }, async (_, i) => ({ sum: i })))
        r.reduce((a, b) => a + b.sum, 0)
      },
    },
    {
      id: `JSON.stringify ckpt (${checkpointText.length} B)`,
      group: 'floor: durability',
      unit: 'us',
      ops: 2000,
      samples: 21,
      fn: () => {
        for (let i = 0; i < 2000; i++) JSON.stringify(checkpoint)
      },
    },
    {
      id: 'structuredClone ckpt',
      group: 'floor: durability',
      unit: 'us',
      ops: 1000,
      samples: 21,
      fn: () => {
        for (let i = 0; i < 1000; i++) structuredClone(checkpoint)
      },
    },
    {
      id: 'stringify + append',
      group: 'floor: durability',
      unit: 'us',
      ops: 500,
      samples: 11,
      setup: () => openSync(join(dir, 'a.log'), 'a'),
      teardown: (fd) => closeSync(fd),
      fn: (fd) => {
        for (let i = 0; i < 500; i++) writeSync(fd, `${JSON.stringify(checkpoint)}\n`)
      },
    },
    {
      id: 'stringify + append + fdatasync',
      group: 'floor: durability',
      unit: 'us',
      ops: 20,
      samples: 15,
      warmup: 1,
      setup: () => openSync(join(dir, 'b.log'), 'a'),
      teardown: (fd) => closeSync(fd),
      fn: (fd) => {
        for (let i = 0; i < 20; i++) {
          writeSync(fd, `${JSON.stringify(checkpoint)}\n`)
          fdatasyncSync(fd)
        }
      },
    },
    {
      id: 'stringify + append + fsync',
      group: 'floor: durability',
      unit: 'us',
      ops: 20,
      samples: 15,
      warmup: 1,
      setup: () => openSync(join(dir, 'c.log'), 'a'),
      teardown: (fd) => closeSync(fd),
      fn: (fd) => {
        for (let i = 0; i < 20; i++) {
          writeSync(fd, `${JSON.stringify(checkpoint)}\n`)
          fsyncSync(fd)
        }
      },
    },
    ...['NORMAL', 'FULL'].map((sync) => ({
      id: `better-sqlite3 WAL ${sync} insert`,
      group: 'floor: durability',
      unit: 'us',
      ops: sync === 'FULL' ? 20 : 500,
      samples: 11,
      note: '1 txn each',
      setup: () => {
        const db = new Database(join(dir, `s-${sync}.db`))
        db.pragma('journal_mode = WAL')
        db.pragma(`synchronous = ${sync}`)
        db.exec('create table c (thread text, step integer, body text, primary key (thread, step))')
        const ins = db.prepare('insert or replace into c values (?,?,?)')
        let step = 0
        return { db, put: () => ins.run('t', step++, JSON.stringify(checkpoint)) }
      },
      teardown: ({ db }) => db.close(),
      fn: ({ put }) => {
        const n = sync === 'FULL' ? 20 : 500
        for (let i = 0; i < n; i++) put()
      },
    })),
    {
      id: 'NDJSON child pipes, 1 in flight',
      group: 'floor: out-of-process policy',
      note: 'median round trip',
      measure: async () => {
        const c = spawn(process.execPath, ['-e', CHILD], { stdio: ['pipe', 'pipe', 'inherit'] })
        try {
          return await rtt(ndjsonClient(c.stdout, c.stdin), 5000)
        } finally {
          c.stdin.end()
          c.kill()
        }
      },
    },
    ...[16, 256].map((depth) => ({
      id: `NDJSON child pipes, ${depth} in flight`,
      group: 'floor: out-of-process policy',
      measure: async () => {
        const c = spawn(process.execPath, ['-e', CHILD], { stdio: ['pipe', 'pipe', 'inherit'] })
        try {
          return await pipelined(ndjsonClient(c.stdout, c.stdin), 40000, depth)
        } finally {
          c.stdin.end()
          c.kill()
        }
      },
    })),
    {
      id: 'NDJSON unix socket (child), 1 in flight',
      group: 'floor: out-of-process policy',
      note: 'median round trip',
      measure: async () => {
        const path = join(dir, 'p.sock')
        const src = `const net=require('net');net.createServer(s=>{let buf='';s.setEncoding('utf8');s.on('data',d=>{buf+=d;let out='';let i;while((i=buf.indexOf('\\n'))>=0){const m=JSON.parse(buf.slice(0,i));buf=buf.slice(i+1);out+=JSON.stringify({id:m.id,verdict:'proceed'})+'\\n';}if(out)s.write(out);});}).listen(process.argv[1],()=>console.log('up'));`
        const c = spawn(process.execPath, ['-e', src, path], { stdio: ['ignore', 'pipe', 'inherit'] })
        await new Promise((r) => c.stdout.once('data', r))
        const s = connect(path)
        try {
          return await rtt(ndjsonClient(s, s), 5000)
        } finally {
          s.destroy()
          c.kill()
        }
      },
    },
    {
      id: 'worker_threads postMessage, 1 in flight',
      group: 'floor: out-of-process policy',
      note: 'median round trip',
      measure: async () => {
        const w = new Worker(
          `const {parentPort}=require('worker_threads');parentPort.on('message',m=>parentPort.postMessage({id:m.id,verdict:'proceed'}));`,
          { eval: true },
        )
        let seq = 0
        const waiting = new Map()
        w.on('message', (m) => {
          const d = waiting.get(m.id)
          waiting.delete(m.id)
          d(m)
        })
        const call = (b) =>
          new Promise((r) => {
            const id = ++seq
            waiting.set(id, r)
            w.postMessage({ id, ...b })
          })
        try {
          return await rtt(call, 5000)
        } finally {
          await w.terminate()
        }
      },
    },
    {
      id: 'child process cold start to first verdict',
      group: 'floor: out-of-process policy',
      unit: 'ms',
      ops: 1,
      samples: 9,
      warmup: 1,
      fn: async () => {
        const c = spawn(process.execPath, ['-e', CHILD], { stdio: ['pipe', 'pipe', 'inherit'] })
        await ndjsonClient(c.stdout, c.stdin)(request)
        c.stdin.end()
        c.kill()
      },
    },
    {
      id: 'async generator',
      group: 'stream 10000 chunks',
      unit: 'chunks/s',
      rate: true,
      ops: 10000,
      samples: 21,
      warmup: 5,
      fn: async () => {
        let _n = 0
        async function* g() {
          for (let i = 0; i < 10000; i++) yield { delta: 'tok ' }
        }
        for await (const x of g()) _n += x.delta.length
      },
    },
    ...[0, 1, 5].map((k) => ({
      id: `web ReadableStream + ${k} TransformStream`,
      series: 'identity TransformStream',
      k,
      group: 'stream 10000 chunks',
      unit: 'chunks/s',
      rate: true,
      ops: 10000,
      samples: 9,
      warmup: 2,
      fn: async () => {
        let i = 0
        let s = new ReadableStream({
          pull(c) {
            if (i++ < 10000) c.enqueue({ delta: 'tok ' })
            else c.close()
          },
        })
        for (let j = 0; j < k; j++)
          s = s.pipeThrough(
            new TransformStream({
              transform(x, c) {
                c.enqueue(x)
              },
            }),
          )
        let _n = 0
        for await (const x of s) _n += x.delta.length
      },
    })),
  ]
}
