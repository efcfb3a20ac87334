import type { Scaffold, Scaffolded } from './scaffold.ts'
import { manifestOf, namedBy, wordsOf } from './scaffold-parts.ts'

/** A policy in Python that needs nothing but its standard library. */
export function python(scaffold: Scaffold): Scaffolded {
  const { name } = scaffold
  const module = name.replaceAll('-', '_')
  return {
    files: {
      [`${name}.json`]: manifestOf(scaffold, ['python3', `${module}.py`]),
      [`${module}.py`]: programOf(scaffold),
      [`test_${module}.py`]: testOf(scaffold, module),
    },
    test: `python3 -m unittest discover ${name}`,
  }
}

function programOf(scaffold: Scaffold): string {
  const { type, seam, half, admits } = scaffold
  const { yes, no } = wordsOf(scaffold)
  const shown = half === 'before' ? 'input' : 'outcome'
  const rule = `    name = params["subject"].get("${namedBy(seam)}")
    if name in params["component"].get("refuse", []):
        return {"action": "${no}", "reason": f"{name} is on the list of what is refused"}
`
  return `"""The policy ${type}: JSON-RPC 2.0, one message a line, over standard input and output."""

import json
import sys


def ${half}(params):
    """Is consulted at ${seam}. Also shown is params["${shown}"]. May answer: ${admits.join(', ')}."""
${no === undefined ? '' : rule}    return {"action": "${yes}"}


def self_test(params):
    """Runs on "sluice policy check"; raise what is wrong with params["component"], or with what this policy needs."""
    return True


ANSWERS = {
    "init": lambda params: {"protocol": 1, "selfTest": True},
    "shutdown": lambda params: None,
    "selfTest": self_test,
    "${half}": ${half},
}


def answer(message):
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] not in ANSWERS:
        return {**reply, "error": {"code": -32601, "message": f'there is no method "{message["method"]}"'}}
    try:
        return {**reply, "result": ANSWERS[message["method"]](message.get("params", {}))}
    except Exception as error:
        return {**reply, "error": {"code": -32000, "message": str(error), "data": {"name": type(error).__name__}}}


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:  # a notification: what is answered at once cannot be given up
            continue
        print(json.dumps(answer(message)), flush=True)
        if message["method"] == "shutdown":
            break


if __name__ == "__main__":
    main()
`
}

function testOf(scaffold: Scaffold, module: string): string {
  const { type, seam, half } = scaffold
  const { yes, no } = wordsOf(scaffold)
  const refuses = `
    def test_what_is_on_the_list_is_refused(self):
        self.assertEqual(decide("this", ["this"])["action"], "${no}")
`
  return `import unittest

import ${module}


def decide(name, refuse):
    return ${module}.${half}({"subject": {"${namedBy(seam)}": name}, "component": {"refuse": refuse}})


class ${type}Test(unittest.TestCase):
    def test_what_is_not_on_the_list_goes_on(self):
        self.assertEqual(decide("that", ["this"]), {"action": "${yes}"})
${no === undefined ? '' : refuses}

if __name__ == "__main__":
    unittest.main()
`
}
