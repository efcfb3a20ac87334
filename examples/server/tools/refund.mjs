#!/usr/bin/env node
let text = ''
for await (const part of process.stdin) text += part
process.stdout.write(JSON.stringify({ receipt: `paid back order ${JSON.parse(text).order}` }))
