import type { Store } from '@sluice/core'
import { sqliteStore } from '@sluice/host'
import { requireFile, type StoreFile } from './file.ts'

/** Does something with a store that is there, and closes it. @throws SluiceError `CLI_STORE` where there is none. */
export async function withStore<Result>(file: StoreFile, work: (store: Store) => Promise<Result>): Promise<Result> {
  requireFile(file)
  const store = sqliteStore(file.path)
  try {
    return await work(store)
  } finally {
    store.close()
  }
}

/** A store that is opened, and made where there is none, when it is first used: a call that is refused before leaves no file. */
export function storeWhenUsed({ path }: StoreFile): Store {
  let opened: Store | undefined
  const store = () => {
    opened ??= sqliteStore(path)
    return opened
  }
  return {
    get renewEveryMs() {
      return store().renewEveryMs
    },
    get kept() {
      return store().kept
    },
    acquire: (...args) => store().acquire(...args),
    renew: (...args) => store().renew(...args),
    release: (...args) => store().release(...args),
    append: (...args) => store().append(...args),
    load: (...args) => store().load(...args),
    read: (...args) => store().read(...args),
    fork: (...args) => store().fork(...args),
    trim: (...args) => store().trim(...args),
    lines: (...args) => store().lines(...args),
    remove: (...args) => store().remove(...args),
    close: () => opened?.close(),
  }
}
