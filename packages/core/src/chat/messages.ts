import { SluiceError } from '../errors/error.ts'
import { isObject, type Json } from '../json/json.ts'
import { adopt } from '../json/own.ts'
import { asGiven, asList, changeOfList, Field, refuseOwnList } from '../state/field.ts'
import type { ChatMessage } from './chat.ts'
import { readMessage } from './read.ts'

/** In an update of a {@link messages} field, takes the message with this id out of the list. */
export interface RemoveMessage {
  readonly remove: string
}
export const removeMessage = (id: string): RemoveMessage => ({ remove: id })

const isRemoval = (item: unknown): item is RemoveMessage =>
  isObject(item) && typeof item.remove === 'string' && Object.keys(item).length === 1

/**
 * A conversation. What nodes return is added at its end; a message whose id is already there takes the place of that one,
 * and {@link removeMessage} takes one out. Starts empty.
 */
export function messages(): Field<readonly ChatMessage[], readonly (ChatMessage | RemoveMessage)[]> {
  return new Field({
    whole: (value) => (value === undefined ? [] : asList(value, 'messages').map(read)),
    update: (value) => asList(value, 'messages').map((item, i) => (isRemoval(item) ? item : read(item, i))),
    reduce: (current, update) => reduceMessages(asList(current ?? [], 'messages') as readonly ChatMessage[], update),
    change: changeOfList,
  })
}

const read = (item: unknown, i: number) => asGiven(item, readMessage(item, `messages[${i}]`))

/** A conversation with an update: what is added, replaced and removed. */
export function reduceMessages(current: readonly ChatMessage[], update: Json): Json {
  refuseOwnList(current, update)
  const list = [...current]
  let grew = true
  const seen = new Set<string>()
  for (const item of asList(update, 'messages') as readonly (ChatMessage | RemoveMessage)[]) {
    const id = isRemoval(item) ? item.remove : item.id
    if (id !== undefined) once(seen, id)
    const at = id === undefined ? -1 : list.findIndex((message) => message.id === id)
    if (at >= 0) grew = false
    if (isRemoval(item)) {
      if (at < 0) throw new SluiceError('STATE_UPDATE', `there is no message with id "${id}" to remove`)
      list.splice(at, 1)
    } else if (at < 0) list.push(item)
    else list[at] = item
  }
  return adopt(list, undefined, grew ? current : [])
}

function once(seen: Set<string>, id: string): void {
  if (seen.has(id)) throw new SluiceError('STATE_UPDATE', `one update uses the message id "${id}" twice`)
  seen.add(id)
}
