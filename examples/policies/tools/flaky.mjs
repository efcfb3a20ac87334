#!/usr/bin/env node
// A lookup against a service that is having a bad day: it never answers. FLAKY_MODE=ok mends it.
import { readFileSync } from 'node:fs'

const { query } = JSON.parse(readFileSync(0, 'utf8'))
if (process.env.FLAKY_MODE === 'ok') {
  console.log(JSON.stringify({ answer: `what we know about ${query}` }))
} else {
  console.error(process.env.FLAKY_MODE === 'fatal' ? 'the account is closed' : 'service unavailable')
  process.exit(1)
}
