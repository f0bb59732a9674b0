"""What each statement is judged by: its samples, one a run, from the file alone.

No jax in this door, and no bound: those stand in ``config``, and ``lsa_lab.claims`` judges.
"""


def samples(dataset):
    return {"as_good": (dataset.risk / dataset.step_risk).values}
