#!/usr/bin/env node
// Says what it would run, and runs nothing.
import { readFileSync } from 'node:fs'

const { cmd } = JSON.parse(readFileSync(0, 'utf8'))
console.log(JSON.stringify({ stdout: `(would run) ${cmd}` }))
