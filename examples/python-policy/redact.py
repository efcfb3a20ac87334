"""A policy in Python, without any library: JSON-RPC 2.0, one message a line, over standard input and output."""

import json
import sys


def redact(value, words):
    """The value with every word of the operator's list blacked out in its texts."""
    if isinstance(value, str):
        for word in words:
            value = value.replace(word, "█" * len(word))
        return value
    if isinstance(value, list):
        return [redact(item, words) for item in value]
    if isinstance(value, dict):
        return {key: redact(item, words) for key, item in value.items()}
    return value


def before(params):
    return {"action": "modify", "input": redact(params["input"], params["component"].get("words", []))}


ANSWERS = {"init": lambda params: {"protocol": 1}, "shutdown": lambda params: None, "before": before}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:  # a notification, such as cancel: these answers are given at once, so there is nothing to give up
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        answer["result"] = ANSWERS[message["method"]](message.get("params", {}))
    except Exception as error:
        answer["error"] = {"code": -32000, "message": str(error), "data": {"name": type(error).__name__}}
    print(json.dumps(answer), flush=True)
    if message["method"] == "shutdown":
        break
