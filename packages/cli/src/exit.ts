/** What the command's exit code says. `wrong`: the call, a plugin or the document, so nothing was run. */
export const EXIT = { completed: 0, failed: 1, wrong: 2, interrupted: 130 } as const
