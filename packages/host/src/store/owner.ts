import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** Who holds a lease, as it stands in the file. */
export interface Owner {
  readonly host: string
  readonly pid: number
  /** When the process began, in the host's own count. Process numbers come round again. */
  readonly start?: string
  /** Where its number counts: two containers may share a host's name, not its processes. */
  readonly space?: string
}

/** What the kernel says of a process: its state, and when it began. Absent for one that is not there, and elsewhere than on Linux. */
function statOf(pid: number | 'self'): { readonly state: string; readonly start: string } | undefined {
  const text = attempt(() => readFileSync(`/proc/${pid}/stat`, 'latin1'))
  // The second field is the program's name in parentheses, and may hold spaces and parentheses itself.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ')
  const [state, start] = [fields?.[0], fields?.[19]]
  return state === undefined || start === undefined ? undefined : { state, start }
}

let self: Owner | undefined

export function thisProcess(): Owner {
  self ??= {
    host: hostname(),
    pid: process.pid,
    start: statOf('self')?.start,
    space: attempt(() => readlinkSync('/proc/self/ns/pid')),
  }
  return self
}

export const parseOwner = (text: string): Owner | undefined => attempt(() => JSON.parse(text) as Owner)

/** Whether a holder cannot write any more, as far as this process can know. */
export function isGone(owner: Owner): boolean {
  const here = thisProcess()
  if (owner.host !== here.host || owner.space !== here.space) return false
  if (owner.pid === here.pid) return owner.start !== here.start
  if (!isThere(owner.pid)) return true
  const stat = statOf(owner.pid)
  if (stat === undefined) return false
  return stat.start !== owner.start || stat.state === 'Z' || stat.state === 'X'
}

export function describeOwner(owner: Owner | undefined): string {
  if (owner === undefined) return 'another process'
  const here = thisProcess()
  if (owner.host !== here.host) return `process ${owner.pid} on host "${owner.host}"`
  return owner.pid === here.pid && owner.start === here.start ? 'another run of this process' : `process ${owner.pid}`
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function attempt<Value>(read: () => Value): Value | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
