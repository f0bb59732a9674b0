"""What is judged: each statement whole, fixed before the first run.

No jax in this door: ``sample`` takes its numbers from the saved file, and the harness judges them.
"""

from lsa_lab.judging.statements import Statement


def statements(config):
    return (
        Statement(
            "as_good",
            "ours",  # who says so: a paper and its theorem, "derived here", "ours"
            f"One trained layer does as well as the best step of descent at n = {config.n}",
            "the layer's risk over that of the step, on the same prompts",
            "ratio",  # the geometric mean over runs, with its interval
            at_most=1.05,  # the whole interval keeps it: holds; none of it: fails
            sample=lambda dataset: (dataset.risk / dataset.step_risk).values,  # a number a run
        ),
    )
