import unittest

from sluice_plugin import test_policy as consulted
from spend_limit import SPEND_LIMIT


# #region test
def asked(amount, spent, **given):
    subject = {"nodeName": "agent", "toolName": "pay"}
    return consulted(SPEND_LIMIT, "toolCall", subject=subject, input={"amount": amount}, kept={"spent": spent}, **given)


class SpendLimit(unittest.TestCase):
    def test_lets_a_payment_in_and_counts_it(self):
        tested = asked(60, spent=40)
        self.assertEqual((tested.verdict, tested.kept), ({"action": "proceed"}, {"spent": 100}))

    def test_refuses_what_would_be_too_much_and_counts_it_not(self):
        tested = asked(61, spent=40)
        self.assertEqual(tested.verdict["reason"], "40 of 100 are spent; 61 more are too much")
        self.assertIsNone(tested.kept)

    def test_counts_a_payment_once_however_often_it_is_asked_about_it(self):
        self.assertIsNone(asked(60, spent=100, revisit=True).kept)
# #endregion


class Kit(unittest.TestCase):
    def consult(self, handler, seam="toolCall", half="before", **given):
        given = given or {"input": {}}
        return consulted({seam: {half: handler}}, seam, **given)

    def test_refuses_an_action_of_another_half_and_lists_those_that_count(self):
        with self.assertRaisesRegex(ValueError, "answered 'pass'; toolCall.before admits: proceed, modify"):
            self.consult(lambda shown, ctx: {"action": "pass"})

    def test_refuses_a_verdict_without_what_it_needs(self):
        with self.assertRaisesRegex(ValueError, 'answered "reject" without "reason"'):
            self.consult(lambda shown, ctx: {"action": "reject"})

    def test_says_which_handler_is_missing(self):
        with self.assertRaisesRegex(LookupError, "no handler for toolCall.after"):
            self.consult(lambda shown, ctx: {}, outcome={"ok": True, "value": 1})

    def test_says_that_a_manifest_declares_nothing_to_keep(self):
        with self.assertRaisesRegex(TypeError, "the manifest declares none"):
            self.consult(lambda shown, ctx: ctx.kept.value)

    def test_plays_tools_and_models_and_gathers_what_is_told(self):
        def before(shown, ctx):
            ctx.emit_event("asked", {"n": 1})
            ctx.log("info", "asking")
            found = ctx.run_tool("search", {"q": "x"})
            answer = ctx.call_model([{"role": "user", "content": "safe?"}])
            return {"action": "replace", "value": [found, answer["content"]]}

        def model(request):
            return {"content": f"{len(request['messages'])} message"}

        tested = self.consult(before, input={}, run_tool=lambda name, given: [name, given], call_model=model)
        self.assertEqual(tested.verdict["value"], [["search", {"q": "x"}], "1 message"])
        self.assertEqual(tested.events, [{"name": "asked", "data": {"n": 1}}])
        self.assertEqual(tested.logs, [{"level": "info", "message": "asking"}])


if __name__ == "__main__":
    unittest.main()
