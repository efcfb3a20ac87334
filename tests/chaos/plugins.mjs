// Programs that misbehave, each in one way. They all declare a policy `Bad` at both halves of toolCall and of ask.

/** Speaks the protocol by hand: `say` prints a message, `answer` a verdict, `on` is given each question. */
const BY_HAND = `
import { createInterface } from 'node:readline'
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const answer = ({ id, method }) => say({ id, result: { action: method === 'after' ? 'pass' : 'proceed' } })
let asked = 0
const listen = (on) => createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line)
  if (message.method === 'before' || message.method === 'after') on(message, ++asked)
  else if (message.method === 'shutdown') process.exit(0)
  else if (message.method === 'init') say({ id: message.id, result: { protocol: 1 } })
})
`

/** @type {readonly { name: string, program: string }[]} */
export const BAD = [
  { name: 'crashes at each call', program: `${BY_HAND} listen(() => process.exit(3))` },
  {
    name: 'crashes now and then',
    program: `${BY_HAND} listen((m, n) => (n % 7 === 0 ? process.exit(3) : answer(m)))`,
  },
  { name: 'hangs', program: `${BY_HAND} listen(() => {})` },
  {
    name: 'hangs now and then',
    program: `${BY_HAND} listen((m, n) => n % 5 === 0 || answer(m))`,
  },
  {
    name: 'stops reading',
    program: `${BY_HAND} listen((m) => { answer(m); process.stdin.pause(); setInterval(() => {}, 1000) })`,
  },
  { name: 'answers late', program: `${BY_HAND} listen((m) => setTimeout(answer, 400, m))` },
  { name: 'answers twice', program: `${BY_HAND} listen((m) => { answer(m); answer(m) })` },
  {
    name: 'answers for others',
    program: `${BY_HAND} let last; listen((m, n) => { if (last) answer(last); last = m; if (n % 3 === 0) answer({ ...m, id: m.id + 1000 }) })`,
  },
  {
    name: 'prints garbage',
    program: `${BY_HAND} listen((m, n) => { if (n % 2) process.stdout.write('{"oops\\n'); answer(m) })`,
  },
  {
    name: 'answers nonsense',
    program: `${BY_HAND} listen(({ id }, n) => say({ id, result: [n, 'allow', {}, null][n % 4] })) `,
  },
  {
    name: 'prints 100 MB',
    program: `${BY_HAND} const mb = 'x'.repeat(1 << 20); let sent = 0
      const more = () => { if (sent++ < 100) process.stdout.write(mb, more) }
      listen((m, n) => (n === 3 ? more() : answer(m)))`,
  },
  {
    name: 'reports without end',
    program: `${BY_HAND} listen((m) => {
      for (let i = 0; i < 200; i++) say({ method: 'log', params: { call: m.id, level: 'info', message: 'x'.repeat(1000) } })
      answer(m)
    })`,
  },
  {
    name: 'forks',
    program: `import { spawn } from 'node:child_process'
      ${BY_HAND} listen((m, n) => {
        if (n % 10 === 1) spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', import.meta.filename], { stdio: 'ignore' })
        answer(m)
      })`,
  },
  {
    name: 'ignores that it is to end',
    program: `process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)
      ${BY_HAND.replace('process.exit(0)', 'null')} listen(answer)`,
  },
  {
    name: 'exhausts its file descriptors',
    program: `import { openSync } from 'node:fs'
      ${BY_HAND} listen((m) => { try { for (;;) openSync(import.meta.filename) } catch {} answer(m) })`,
  },
]
