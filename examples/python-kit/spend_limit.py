"""No more than a limit is spent on a thread, over all its runs and processes."""

from sluice_plugin import serve


# #region policy
def before(shown, ctx):
    limit = ctx.component.get("limit", 100)
    if shown["subject"].get("toolName") != "pay" or ctx.revisit:
        return {"action": "proceed"}
    spent, amount = ctx.kept.value["spent"], shown["input"]["amount"]
    if spent + amount > limit:
        return {"action": "reject", "reason": f"{spent} of {limit} are spent; {amount} more are too much"}
    ctx.kept.update(lambda kept: {"spent": kept["spent"] + amount})
    return {"action": "proceed"}


SPEND_LIMIT = {"toolCall": {"before": before}}

if __name__ == "__main__":
    serve({"SpendLimit": SPEND_LIMIT})
# #endregion
