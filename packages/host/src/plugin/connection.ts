import type { Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import {
  errorLine,
  isTooLong,
  LineReader,
  MAX_LINE_BYTES,
  MAX_MESSAGE_DEPTH,
  notificationLine,
  Outbox,
  PROTOCOL,
  requestLine,
  resultLine,
} from '@sluice/plugin/wire'
import { Child, type Ending, type Program } from '../child/child.ts'
import { type Asker, type Call, CallTable } from './call.ts'
import { describeEnding, PluginError, PluginHandlerError } from './error.ts'
import { initParams, otherProtocol } from './handshake.ts'
import { type Message, readMessage } from './message.ts'
import { answerText, faultOf, serveAsked } from './served.ts'
import { endChild } from './stop.ts'
import { LastWords } from './words.ts'

/** Calls that one process may have in flight. */
const MAX_PENDING = 1_000
/** Bytes that may wait for a process which does not read. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024
/** Milliseconds that a process may take to start; until it says something, no policy's time runs. */
const START_MS = 5_000
/** Calls given up and never answered; with more, the process is replaced. */
const MAX_OWED = 32

const TO_STDERR = 'stdout carries the protocol, so print to stderr (console.error)'

export interface ConnectionOptions {
  readonly plugin: string
  readonly program: Program
  readonly capabilities: readonly string[]
  /** Milliseconds that the process may take to start; 5,000 unless said. */
  readonly startMs?: number
  warn(message: string): void
  /** What the program writes to stderr. */
  say(text: string): void
  /** Called once, when the process is gone; with an error unless it was asked to end. */
  onEnd(connection: Connection, death: PluginError | undefined): void
}

/** One living process of a plugin. */
export class Connection {
  readonly #options: ConnectionOptions
  readonly #child: Child
  readonly #outbox: Outbox
  readonly #calls = new CallTable((call) => this.#givenUp(call))
  readonly #words = new LastWords()
  readonly #initId = 1
  /** Who asked before the process had said anything; absent once it has. */
  #early: Set<Asker> | undefined = new Set()
  readonly #starting: NodeJS.Timeout
  #nextId = 2
  #isRetired = false
  #stopping: Promise<void> | undefined
  /** Whether it ever answered a call. */
  hasAnswered = false
  /** What made it unusable. */
  failure: PluginError | undefined
  /** What the process answered to `init`, if that was no refusal. Rejects when it ends before. */
  readonly greeted: Promise<unknown>
  #greet: { resolve(answer: unknown): void; reject(failure: unknown): void } = { resolve() {}, reject() {} }

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.greeted = new Promise((resolve, reject) => {
      this.#greet = { resolve, reject }
    })
    // Mostly nobody waits for it.
    this.greeted.catch(() => {})
    this.#child = new Child(options.program)
    const { stdin, stdout, stderr } = this.#child.process
    this.#outbox = new Outbox((text) => stdin.write(text))
    const reader = new LineReader({
      maxBytes: MAX_LINE_BYTES,
      onLine: (line) => this.#receive(line),
      onTooLong: () => this.#fail('PLUGIN_LINE_TOO_LONG', `printed a line of more than ${MAX_LINE_BYTES} bytes`),
    })
    stdout.on('data', (chunk: Buffer) => reader.push(chunk))
    const decoder = new StringDecoder()
    stderr.on('data', (chunk: Buffer) => {
      this.#words.push(chunk)
      options.say(decoder.write(chunk))
    })
    // Only a call in flight keeps this process running. Pipes are sockets, whatever their type says.
    for (const pipe of [stdin, stdout, stderr]) (pipe as Socket).unref()
    this.#child.process.unref()
    this.#child.ended.then((ending) => this.#ended(ending))
    this.#starting = setTimeout(() => this.#started(), options.startMs ?? START_MS).unref()
    this.#outbox.send(requestLine(this.#initId, 'init', initParams(options.capabilities)))
  }

  /** Whether new calls may go to it. */
  get isOpen(): boolean {
    return !this.#isRetired && !this.#child.exited && this.failure === undefined && this.#stopping === undefined
  }

  /** Whether too much is waiting for it to read. */
  get #isDeaf(): boolean {
    return this.#child.process.stdin.writableLength > MAX_QUEUED_BYTES
  }

  /**
   * Sends a request.
   *
   * @param params JSON text.
   * @throws PluginError `PLUGIN_BUSY`, `PLUGIN_TOO_LARGE`.
   */
  call(method: string, params: string, asker: Asker): Call {
    if (this.#calls.size >= MAX_PENDING || this.#isDeaf) {
      throw this.#error('PLUGIN_BUSY', `has ${this.#calls.size} calls to answer and takes no more`)
    }
    if (isTooLong(params)) {
      throw this.#error('PLUGIN_TOO_LARGE', `cannot be shown this ${method}: it is longer than ${MAX_LINE_BYTES} bytes`)
    }
    if (this.#calls.size === 0) this.#child.process.ref()
    const call = this.#calls.open(this.#nextId++, asker)
    if (this.#early !== undefined) {
      this.#early.add(asker)
      asker.hold?.()
    }
    this.#outbox.send(requestLine(call.id, method, params))
    return call
  }

  /** Asks the process to end, and kills it if it does not. Calls in flight are rejected. */
  stop(): Promise<void> {
    this.#calls.rejectAll(this.#error('PLUGIN_CLOSED', 'was closed'))
    if (this.#stopping === undefined) {
      this.#outbox.send(requestLine(this.#nextId++, 'shutdown', '{}'))
      this.#outbox.flush()
      this.#stopping = endChild(this.#child)
    }
    return this.#stopping
  }

  #started(): void {
    clearTimeout(this.#starting)
    for (const asker of this.#early ?? []) asker.release?.()
    this.#early = undefined
  }

  #receive(line: string): void {
    if (this.#early !== undefined) this.#started()
    if (line.trim() === '') return
    const message = readMessage(line)
    if (message === undefined) this.#stray(line)
    else if (message.kind === 'ask') this.#serve(message)
    else this.#settle(message)
  }

  #settle(message: Exclude<Message, { kind: 'ask' }>): void {
    const call = this.#calls.take(message.id)
    if (call === undefined) this.#settleOther(message)
    else {
      this.hasAnswered = true
      if (message.kind === 'answer') call.resolve(message.result)
      else if (message.kind === 'fault') call.reject(new PluginHandlerError(this.#options.plugin, message.error))
      else
        call.reject(
          this.#error('PLUGIN_ANSWER', `answered with a value nested deeper than ${MAX_MESSAGE_DEPTH} levels`),
        )
      this.#rest()
    }
  }

  #settleOther(message: Exclude<Message, { kind: 'ask' }>): void {
    if (message.id === this.#initId) {
      const other = message.kind === 'answer' ? otherProtocol(message.result) : undefined
      if (other !== undefined) {
        this.#fail('PLUGIN_PROTOCOL', `speaks version ${other} of the protocol; this host speaks ${PROTOCOL}`)
      }
      this.#greet.resolve(message.kind === 'answer' ? message.result : undefined)
    } else if (!this.#calls.forgive(message.id) && this.#stopping === undefined) {
      this.#options.warn(`answered call ${message.id}, which does not wait for an answer`)
    }
  }

  async #serve({ id, method, params }: Extract<Message, { kind: 'ask' }>): Promise<void> {
    if (this.#isDeaf) {
      this.#fail('PLUGIN_BUSY', `does not read what it asked for; ${MAX_QUEUED_BYTES} bytes are waiting`)
      return
    }
    try {
      const result = await serveAsked(method, params, this.#calls.get(params.call), this.#options.capabilities)
      if (id !== undefined) this.#outbox.send(resultLine(id, answerText(result)))
    } catch (error) {
      const fault = faultOf(error)
      if (id === undefined) this.#options.warn(`${method} was refused: ${fault.message}`)
      else this.#outbox.send(errorLine(id, fault))
    }
  }

  /** The error does not quote the line: it may be about another caller's call. The operator's warning does. */
  #stray(line: string): void {
    this.#options.warn(`printed a line that is no message, "${line.slice(0, 200)}"; ${TO_STDERR}`)
    this.#calls.only?.giveUp(
      this.#error('PLUGIN_STRAY_LINE', `printed a line of ${line.length} characters that is no message; ${TO_STDERR}`),
    )
  }

  #givenUp(call: Call): void {
    this.#outbox.send(notificationLine('cancel', `{"call":${call.id}}`))
    if (this.#calls.owed > MAX_OWED && !this.#isRetired) {
      this.#isRetired = true
      this.#options.warn(`owes the answers of more than ${MAX_OWED} given-up calls; a new process takes its place`)
    }
    this.#rest()
  }

  #rest(): void {
    if (this.#calls.size > 0) return
    this.#child.process.unref()
    if (this.#isRetired) this.stop()
  }

  #fail(code: string, why: string): void {
    this.failure = this.#error(code, why)
    this.#greet.reject(this.failure)
    this.#calls.rejectAll(this.failure)
    this.#child.kill('SIGKILL')
  }

  #ended(ending: Ending): void {
    this.#started()
    if (this.#stopping === undefined && this.failure === undefined) {
      const code = ending.error === undefined ? 'PLUGIN_DIED' : 'PLUGIN_START'
      this.failure = this.#error(code, describeEnding(ending, this.#words.text))
    }
    this.#greet.reject(this.failure)
    this.#calls.rejectAll(this.failure)
    this.#options.onEnd(this, this.failure)
  }

  #error(code: string, why: string): PluginError {
    const { plugin } = this.#options
    return new PluginError(code, `plugin "${plugin}" ${why}.`, { plugin, ...FAILED[code] })
  }
}

/** What is written down of a policy's failure, where it is more than that something was thrown. */
const FAILED: { readonly [code: string]: { readonly failed: 'died' | 'nonsense' } } = {
  PLUGIN_DIED: { failed: 'died' },
  PLUGIN_START: { failed: 'died' },
  PLUGIN_CLOSED: { failed: 'died' },
  PLUGIN_ANSWER: { failed: 'nonsense' },
  PLUGIN_STRAY_LINE: { failed: 'nonsense' },
  PLUGIN_PROTOCOL: { failed: 'nonsense' },
}
