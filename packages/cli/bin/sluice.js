#!/usr/bin/env node
// A file that exists before the first build, so that npm can link the command at install.
import '../dist/main.js'
