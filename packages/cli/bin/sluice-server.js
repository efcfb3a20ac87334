#!/usr/bin/env node
// `sluice serve` under the name that operators of other servers look for.
import { readFileSync } from 'node:fs'
import { main } from '../dist/bundle/sluice.js'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const [node, script, ...args] = process.argv
await main([node, script, 'serve', ...args], version)
