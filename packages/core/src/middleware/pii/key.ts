import { DOT, find, HYPHEN, isAlphanumeric, isWord, type Span, startsAt, type Text } from './text.ts'

/** What keys begin with, by those who hand them out, and the fewest characters after it. */
const PREFIXES: readonly (readonly [prefix: string, rest: number])[] = [
  ['sk-', 20], // OpenAI, Anthropic and others
  ['sk_live_', 16], // Stripe
  ['sk_test_', 16],
  ['rk_live_', 16],
  ['ghp_', 36], // GitHub
  ['gho_', 36],
  ['ghu_', 36],
  ['ghs_', 36],
  ['ghr_', 36],
  ['github_pat_', 22],
  ['glpat-', 20], // GitLab
  ['xoxa-', 10], // Slack
  ['xoxb-', 10],
  ['xoxp-', 10],
  ['xoxr-', 10],
  ['xoxs-', 10],
  ['AKIA', 16], // AWS
  ['ASIA', 16],
  ['AIza', 35], // Google
  ['npm_', 36],
  ['pypi-', 40],
  ['hf_', 30], // Hugging Face
  ['SG.', 40], // SendGrid
  ['gsk_', 40], // Groq
  ['xai-', 40],
  ['dop_v1_', 64], // DigitalOcean
  ['shpat_', 32], // Shopify
  ['lin_api_', 32], // Linear
]

const BLOCK = '-----BEGIN '
const PRIVATE = 'PRIVATE KEY'
const BLOCK_END = '-----END '
const CLOSE = '-----'
/** How far into the first line of a block its name may be. */
const MAX_BLOCK_NAME = 40
/** Characters of a whole block; an RSA key of 16,384 bits has 13 thousand. */
const MAX_BLOCK = 16_384

/** Finds keys and tokens of services by how they begin, JSON web tokens, and private keys in PEM. */
export function findKeys(text: Text): readonly Span[] {
  return [...tokens(text), ...privateKeys(text)]
}

/** Runs of the characters that keys are written with; a key begins at the start of one or after a mark in it. */
function tokens(text: Text): readonly Span[] {
  const spans: Span[] = []
  for (let at = 0; at < text.length; at++) {
    if (!isToken(text.charCodeAt(at))) continue
    const start = at
    while (isToken(text.charCodeAt(at))) at++
    let end = at
    while (text.charCodeAt(end - 1) === DOT) end--
    const key = startOfKey(text, start, end)
    if (key !== undefined) spans.push({ start: key, end })
  }
  return spans
}

const isToken = (at: number) => isWord(at) || at === HYPHEN || at === DOT

function startOfKey(text: Text, start: number, end: number): number | undefined {
  for (let at = start; at < end; at++) {
    const before = at === start ? DOT : text.charCodeAt(at - 1)
    if (isAlphanumeric(before)) continue
    if (isKey(text, at, end) || (before === DOT && isWebToken(text, at, end))) return at
  }
  return undefined
}

const isKey = (text: Text, start: number, end: number): boolean =>
  PREFIXES.some(([prefix, rest]) => end - start >= prefix.length + rest && startsAt(text, prefix, start))

const OBJECT = 'eyJ'

/** RFC 7519 in its compact form: three parts, of which the first two are JSON objects in base64. */
function isWebToken(text: Text, start: number, end: number): boolean {
  if (!startsAt(text, OBJECT, start)) return false
  const second = find(text, '.', start, end)
  return second > 0 && startsAt(text, OBJECT, second + 1) && find(text, '.', second + 1, end) > 0
}

/** A block without an end is a key too: as much of what follows its first line is taken for it as a key may have. */
function privateKeys(text: Text): readonly Span[] {
  const spans: Span[] = []
  for (let start = find(text, BLOCK, 0); start >= 0; start = find(text, BLOCK, start)) {
    const name = text.slice(start + BLOCK.length, start + BLOCK.length + MAX_BLOCK_NAME)
    const end = name.includes(PRIVATE) ? endOfBlock(text, start) : undefined
    if (end !== undefined) spans.push({ start, end })
    start = end ?? start + BLOCK.length
  }
  return spans
}

function endOfBlock(text: Text, start: number): number {
  const most = Math.min(text.length, start + MAX_BLOCK)
  const last = find(text, BLOCK_END, start, most)
  if (last < 0) return most
  const named = last + BLOCK_END.length
  const close = find(text, CLOSE, named, named + MAX_BLOCK_NAME)
  return close < 0 ? named : close + CLOSE.length
}
