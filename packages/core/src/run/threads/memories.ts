import { SluiceError } from '../../errors/error.ts'
import type { ThreadRecord } from '../../store/records.ts'
import type { Task } from '../task.ts'
import { addMemories, type Memories, memoryOf } from './position.ts'

/** What runs that remember have come to, for the run whose nodes start them; the next one of each goes on from there. */
export class RunMemories {
  readonly #settled: Memories
  /** For each task of the superstep, what they have come to in it. */
  readonly #fresh = new Map<string, Memories>()
  /** The execution that started each run which is under way. */
  readonly #underWay = new Map<string, Task>()

  constructor(settled: Memories | undefined) {
    this.#settled = new Map(settled)
  }

  /** What supersteps that are through have left. */
  get settled(): Memories {
    return this.#settled
  }

  /** What the last run of this graph that the node remembers has come to; the next is the only one under way until it ends. */
  take(task: Task, graph: string): readonly ThreadRecord[] {
    const { node, taskId } = task
    const of = memoryOf(node.name, graph)
    if (this.#underWay.get(of)?.over === false) {
      throw new SluiceError(
        'REMEMBER_BUSY',
        `node "${node.name}" starts a run that remembers while another one of it is under way; two would go on from one state.`,
        { node: node.name },
      )
    }
    this.#underWay.set(of, task)
    return this.#fresh.get(taskId)?.get(of) ?? this.#settled.get(of) ?? []
  }

  /** That run has come to its end; the next one goes on from what it is to be remembered by, if it is to be. */
  end({ node: { name }, taskId }: Task, graph: string, memory?: readonly ThreadRecord[]): void {
    const of = memoryOf(name, graph)
    this.#underWay.delete(of)
    if (memory === undefined) return
    const fresh = this.#fresh.get(taskId) ?? new Map()
    this.#fresh.set(taskId, fresh.set(of, memory))
  }

  /** What a task came to remember in an earlier run of its superstep. */
  keep(taskId: string, memories: Memories): void {
    const kept: Memories = new Map()
    for (const of of memories.keys()) kept.set(of, this.#settled.get(of) ?? [])
    addMemories(kept, memories)
    this.#fresh.set(taskId, kept)
  }

  /** An execution is void, and what it came to remember with it. */
  forget(taskId: string): void {
    this.#fresh.delete(taskId)
  }

  /** The superstep is through: what its tasks came to remember stays. */
  settle(): void {
    for (const fresh of this.#fresh.values()) for (const [of, memory] of fresh) this.#settled.set(of, memory)
    this.#fresh.clear()
  }
}
