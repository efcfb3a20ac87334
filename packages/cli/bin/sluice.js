#!/usr/bin/env node
// A file that exists before the first build, so that npm can link the command at install.
import { readFileSync } from 'node:fs'
import { main } from '../dist/bundle/sluice.js'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
await main(process.argv, version)
