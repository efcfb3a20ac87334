import type { ChatMessage } from '../../chat/chat.ts'
import { requireCount } from '../options.ts'
import type { Counted, TokenCounter } from './tokens.ts'

/** Whether a request is too long, and why: `token_limit:1200>960`. */
export interface SummarizationDecision {
  readonly summarize: boolean
  /** Empty where it is not too long. */
  readonly reason: string
}

/** Says of each request whether it is too long. */
export type SummarizationTrigger = (request: Counted, count: TokenCounter) => SummarizationDecision

/** Says which messages of a conversation stay as they are: the index of the first of them. The cut may move back from there. */
export type RecentPolicy = (conversation: readonly ChatMessage[], count: TokenCounter) => number

/** More tokens than this part of what the model takes; 0.8 without `thresholdRatio`. */
export function tokenLimit(maxInputTokens: number, { thresholdRatio = 0.8 } = {}): SummarizationTrigger {
  requirePositive('tokenLimit', maxInputTokens)
  if (!(thresholdRatio > 0 && thresholdRatio <= 1)) {
    throw new RangeError(`tokenLimit: thresholdRatio is ${thresholdRatio}; give a part above 0, up to 1.`)
  }
  const most = Math.floor(maxInputTokens * thresholdRatio)
  return (request, count) => above('token_limit', count(request), most)
}

/** More tokens than this. */
export function fixedTokens(maxTokens: number): SummarizationTrigger {
  requirePositive('fixedTokens', maxTokens)
  return (request, count) => above('fixed_tokens', count(request), maxTokens)
}

/** More messages than this. */
export function messageCount(maxMessages: number): SummarizationTrigger {
  requirePositive('messageCount', maxMessages)
  return ({ messages }) => above('message_count', messages.length, maxMessages)
}

/** The last so many messages stay; 20 without a number. */
export function recentMessages(keep = 20): RecentPolicy {
  requireCount('recentMessages', 'what stays', keep, 0)
  return (conversation) => Math.max(0, conversation.length - keep)
}

/** The last messages stay that have so many tokens together; the newest stays in any case. */
export function recentTokens(keepTokens: number): RecentPolicy {
  requirePositive('recentTokens', keepTokens)
  return (conversation, count) => {
    let at = conversation.length - 1
    let tokens = count({ messages: conversation.slice(at) })
    for (; at > 0; at--) {
      tokens += count({ messages: conversation.slice(at - 1, at) })
      if (tokens > keepTokens) break
    }
    return Math.max(0, at)
  }
}

const above = (what: string, count: number, most: number): SummarizationDecision =>
  count > most ? { summarize: true, reason: `${what}:${count}>${most}` } : { summarize: false, reason: '' }

function requirePositive(what: string, value: number): void {
  if (!(value > 0)) throw new RangeError(`${what}: ${String(value)} is too few; give a number above 0.`)
}
