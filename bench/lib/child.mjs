// One case in a process of its own: prints its rows as JSON.
import { pathToFileURL } from 'node:url'

const { default: measure } = await import(pathToFileURL(process.argv[2]).href)
process.stdout.write(JSON.stringify(await measure()))
process.exit(0)
