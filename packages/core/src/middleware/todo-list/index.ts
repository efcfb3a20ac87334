import { type Tool, tool } from '../../tools/tool.ts'
import { Middleware } from '../middleware.ts'
import { readBy, readMembers } from '../reading.ts'

const STATES = ['pending', 'in_progress', 'completed', 'blocked', 'cancelled', 'failed'] as const

export type TodoState = (typeof STATES)[number]
export interface TodoItem {
  readonly task: string
  readonly state: TodoState
}
/** What both tools give back: the list as it stands. */
export interface TodoListSnapshot {
  readonly items: readonly TodoItem[]
}

export interface TodoListOptions {
  /** Names it, and with it the list: two of one name share one. `TodoListMiddleware` without it. */
  readonly name?: string
}

/** What is kept is at most 64 KiB, and these stay below. */
const MAX_ITEMS = 100
const MAX_TASK = 400

const snapshots = readBy(
  (value): TodoListSnapshot => (value === undefined ? { items: [] } : (value as TodoListSnapshot)),
)

/**
 * Gives an agent a list of what it has to do, with the tools `read_todos` and `write_todos`: put `tools()` among the agent's. The
 * list stands with the thread, over pauses, turns and processes; without a thread it lasts as long as the run.
 *
 * @throws TypeError for an unknown option.
 */
export class TodoListMiddleware extends Middleware<unknown, unknown, TodoListSnapshot> {
  override readonly name: string
  override readonly kept = { scope: 'thread', schema: snapshots } as const
  readonly #tools: readonly Tool[]

  constructor(options: TodoListOptions = {}) {
    super()
    readMembers(options, ['name'], 'TodoListMiddleware')
    this.name = options.name ?? 'TodoListMiddleware'
    this.#tools = [readTodos(this), writeTodos(this)]
  }

  override tools(): readonly Tool[] {
    return this.#tools
  }
}

const readTodos = (list: TodoListMiddleware): Tool =>
  tool('read_todos', {
    description: 'Gives the to-do list of this conversation as it stands.',
    input: readBy((value) => readMembers(value, [], 'the call')),
    parameters: { type: 'object', properties: {}, additionalProperties: false },
    idempotent: true,
    run: (_args, ctx) => ctx.keptOf(list).value,
  })

const writeTodos = (list: TodoListMiddleware): Tool =>
  tool('write_todos', {
    description:
      'Writes the to-do list of this conversation. Use it for work of several steps: write the steps down before you begin, and ' +
      'write the list again whenever the state of one changes. With "replace" false the items are added at the end.',
    input: readBy(readWrite),
    parameters: {
      type: 'object',
      properties: {
        items: {
          type: 'array',
          maxItems: MAX_ITEMS,
          items: {
            type: 'object',
            properties: {
              task: { type: 'string', minLength: 1, maxLength: MAX_TASK },
              state: { enum: [...STATES], default: 'pending' },
            },
            required: ['task'],
            additionalProperties: false,
          },
        },
        replace: { type: 'boolean', default: true, description: 'Whether the list is replaced by the items.' },
      },
      required: ['items'],
      additionalProperties: false,
    },
    idempotent: true,
    run: ({ items, replace }, ctx) => {
      const kept = ctx.keptOf(list)
      if (kept.revisit) return kept.value
      return kept.update((before) => ({ items: bounded(replace ? items : [...before.items, ...items]) }))
    },
  })

function readWrite(value: unknown): { readonly items: readonly TodoItem[]; readonly replace: boolean } {
  const { items, replace = true } = readMembers(value, ['items', 'replace'], 'the call')
  if (!Array.isArray(items)) throw new TypeError('"items" must be a list of { task, state? }')
  if (typeof replace !== 'boolean') throw new TypeError('"replace" must be true or false')
  return { items: bounded(items.map(readItem)), replace }
}

function readItem(item: unknown, i: number): TodoItem {
  const { task, state = 'pending' } = readMembers(item, ['task', 'state'], `items[${i}]`)
  if (typeof task !== 'string' || task.trim() === '' || task.length > MAX_TASK) {
    throw new TypeError(`items[${i}] needs a "task" of 1 to ${MAX_TASK} characters`)
  }
  if (!STATES.includes(state as TodoState)) {
    throw new TypeError(`items[${i}] has the state "${String(state)}"; states are: ${STATES.join(', ')}`)
  }
  return { task, state: state as TodoState }
}

function bounded(items: readonly TodoItem[]): readonly TodoItem[] {
  if (items.length <= MAX_ITEMS) return items
  throw new RangeError(`the list has ${items.length} items, and ${MAX_ITEMS} are the most; replace it by a shorter one`)
}
