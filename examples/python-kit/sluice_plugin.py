"""A kit for policies in Python, with the standard library only: serve(), what is kept, and test_policy().

A handler is a function of what it is shown and of its ctx, and returns a verdict:

    def before(shown, ctx):
        return {"action": "proceed"}

    serve({"Gate": {"toolCall": {"before": before}}})
"""

import copy
import itertools
import json
import sys
import threading
from concurrent.futures import Future

ADMITS = {
    "run": {"before": ["proceed", "modify", "reject", "suspend"], "after": ["pass", "replace", "fail"]},
    "node": {"before": ["proceed", "modify", "replace", "reject", "suspend"], "after": ["pass", "replace", "fail"]},
    "nodeError": {"before": [], "after": ["pass", "replace", "retry", "fail"]},
    "agentRound": {"before": ["proceed", "reject"], "after": ["pass", "fail"]},
    "modelCall": {
        "before": ["proceed", "modify", "replace", "reject", "suspend"],
        "after": ["pass", "replace", "retry", "fail"],
    },
    "toolCall": {
        "before": ["proceed", "modify", "replace", "reject", "suspend"],
        "after": ["pass", "replace", "reject", "fail"],
    },
    "ask": {"before": ["proceed", "replace"], "after": ["pass"]},
}
NEEDS = {"modify": "input", "replace": "value", "reject": "reason", "fail": "reason", "suspend": "ask"}


class Kept:
    """What a policy keeps: it came with the call, and goes back with the verdict."""

    def __init__(self, value):
        self._value = value
        self.changed = False

    @property
    def value(self):
        return copy.deepcopy(self._value)

    def update(self, change):
        """Makes a new value of the old one, and returns it. The host checks it against the schema of the manifest."""
        self._value = json.loads(json.dumps(change(self.value), allow_nan=False))
        self.changed = True
        return self.value


class Context:
    """The ctx of a handler. What a member is stands in docs/policies.md; run_tool and call_model wait for their answer."""

    def __init__(self, params, notify, request):
        self.component = params.get("component", {})
        self.seam = params.get("seam")
        self.admits = params.get("admits", [])
        self.attempt = params.get("attempt", 1)
        self.max_attempts = params.get("maxAttempts", 1)
        self.revisit = params.get("revisit", False)
        self.labels = params.get("labels", [])
        self.substituted = params.get("substituted")
        self.answered = params.get("answered")
        self._kept = Kept(params["kept"]) if "kept" in params else None
        self._notify = notify
        self._request = request

    @property
    def kept(self):
        if self._kept is None:
            raise TypeError("ctx.kept is read, and the manifest declares none; give the component kept: { scope, schema }")
        return self._kept

    def log(self, level, message):
        self._notify("log", {"level": level, "message": message})

    def emit_event(self, name, data=None):
        self._notify("emitEvent", {"name": name, "data": data})

    def run_tool(self, name, arguments):
        return self._request("runTool", {"name": name, "input": arguments})

    def call_model(self, messages, **options):
        return self._request("callModel", {"messages": messages, **options})


def consult(handlers, half, params, ctx):
    """Calls the handler that a question is for, and puts what it keeps into the verdict."""
    kind, seam = params["componentType"], params["seam"]
    handler = handlers.get(kind, {}).get(seam, {}).get(half)
    if handler is None:
        raise LookupError(f'there is no handler for {seam}.{half} of {kind}; write: serve({{"{kind}": {{"{seam}": {{"{half}": …}}}}}})')
    shown = {key: params[key] for key in ("subject", "input", "outcome") if key in params}
    verdict = handler(shown, ctx)
    if ctx._kept is not None and ctx._kept.changed:
        verdict = {**verdict, "kept": ctx.kept.value}
    return verdict


class Session:
    """The plugin's side of the wire. Handlers run in threads of their own, for one may wait while another is asked."""

    def __init__(self, handlers, write):
        self._handlers = handlers
        self._write = write
        self._lock = threading.Lock()
        self._waiting = {}
        self._numbers = itertools.count()

    def receive(self, line):
        """Takes one line of the host; false after the last one."""
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method is None:
            self._settle(message)
        elif method == "init":
            self._send({"id": number, "result": {"protocol": 1}})
        elif method == "shutdown":
            self._send({"id": number, "result": None})
            return False
        elif method == "cancel":
            self._cancel(message["params"]["call"])
        elif number is not None:
            threading.Thread(target=self._work, args=(number, method, message["params"]), daemon=True).start()
        return True

    def _work(self, number, method, params):
        ctx = Context(params, lambda *said: self._notify(number, *said), lambda *asked: self._request(number, *asked))
        try:
            if method not in ("before", "after"):
                raise LookupError(f'"{method}" is not served here')
            self._send({"id": number, "result": consult(self._handlers, method, params, ctx)})
        except Exception as error:
            code = -32004 if isinstance(error, LookupError) else -32000
            self._send({"id": number, "error": {"code": code, "message": str(error), "data": {"name": type(error).__name__}}})

    def _notify(self, call, method, params):
        self._send({"method": method, "params": {"call": call, **params}})

    def _request(self, call, method, params):
        answer, number = Future(), f"r{next(self._numbers)}"
        self._waiting[number] = (call, answer)
        self._send({"id": number, "method": method, "params": {"call": call, **params}})
        return answer.result()

    def _settle(self, message):
        _, answer = self._waiting.pop(message.get("id"), (None, Future()))
        if "error" in message:
            answer.set_exception(RuntimeError(message["error"]["message"]))
        else:
            answer.set_result(message["result"])

    def _cancel(self, given_up):
        for number, (call, answer) in list(self._waiting.items()):
            if call == given_up and self._waiting.pop(number, None):
                answer.set_exception(RuntimeError("the call this was asked in was given up"))

    def _send(self, message):
        line = json.dumps({"jsonrpc": "2.0", **message}, allow_nan=False)
        with self._lock:
            self._write(line)


def serve(handlers):
    """Serves policies over standard input and output until the host asks to end. print() goes to stderr meanwhile."""
    wire, sys.stdout = sys.stdout, sys.stderr
    session = Session(handlers, lambda line: print(line, file=wire, flush=True))
    for line in sys.stdin:
        if line.strip() and not session.receive(line):
            break


class Tested:
    """What came of a consultation: verdict, kept (None when unchanged), events, logs."""

    def __init__(self, verdict, kept, events, logs):
        self.verdict, self.kept, self.events, self.logs = verdict, kept, events, logs


def test_policy(handlers, seam, *, subject=None, settings=None, run_tool=None, call_model=None, **params):
    """Consults the handlers of one policy, {seam: {half: handler}}, as a host would: with an input, or with an outcome.

    run_tool(name, input) and call_model(request) play what the host would do. Raises what the handler raised, and ValueError for
    an answer that the half does not admit.
    """
    half = "after" if "outcome" in params else "before"
    played = {"runTool": lambda asked: run_tool(asked["name"], asked["input"]), "callModel": call_model}
    events, logs = [], []

    def notify(method, said):
        (events if method == "emitEvent" else logs).append(said)

    question = {"componentType": "Policy", "seam": seam, "subject": subject or {}, "component": settings or {}, **params}
    question = json.loads(json.dumps({**question, "admits": ADMITS[seam][half]}))
    ctx = Context(question, notify, lambda method, asked: played[method](asked))
    verdict = json.loads(json.dumps(consult({"Policy": handlers}, half, question, ctx), allow_nan=False))
    check_verdict(seam, half, verdict)
    return Tested({key: verdict[key] for key in verdict if key != "kept"}, verdict.get("kept"), events, logs)


def check_verdict(seam, half, verdict):
    """Raises ValueError for an answer that is no verdict of this half."""
    admitted = ADMITS[seam][half]
    action = verdict.get("action") if isinstance(verdict, dict) else None
    if action not in admitted:
        raise ValueError(f"the policy answered {action!r}; {seam}.{half} admits: {', '.join(admitted)}")
    if NEEDS.get(action) not in verdict and action in NEEDS:
        raise ValueError(f'the policy answered "{action}" without "{NEEDS[action]}"')
