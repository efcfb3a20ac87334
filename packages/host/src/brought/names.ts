/** What parts of submitted code may be called. Whatever is written to the disk is named by one of these, and no name leads out of its folder. */
export const NAMES = {
  tool: { pattern: /^[A-Za-z][A-Za-z0-9_-]{0,63}$/, says: 'a letter, then up to 63 letters, digits, "_" and "-"' },
  plugin: { pattern: /^[A-Za-z][A-Za-z0-9_-]{0,63}$/, says: 'a letter, then up to 63 letters, digits, "_" and "-"' },
  file: {
    pattern:
      /^(?:[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?)(?:\/[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?){0,7}$/,
    says: 'up to 8 names of up to 64 letters, digits, ".", "_" and "-" with "/" between them, none with a "." first or last',
  },
  interpreter: {
    pattern: /^[A-Za-z][A-Za-z0-9._+-]{0,31}$/,
    says: 'the name of a program without its folder, like "node" or "python3"',
  },
} as const

/** Why this is no such name; `undefined` for one that is. */
export function nameFault(kind: keyof typeof NAMES, name: string): string | undefined {
  const { pattern, says } = NAMES[kind]
  if (!pattern.test(name)) return `is ${JSON.stringify(name.slice(0, 80))}; it is ${says}`
  const isInherited = name.split('/').some((part) => part in Object.prototype)
  return isInherited ? `is "${name}", a name that every JavaScript object has` : undefined
}
