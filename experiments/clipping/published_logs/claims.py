"""What `published_logs` judges: changes and gains of score in the logs."""

from functools import cached_property, partial

from lsa_lab.judging.statements import Statement
from lsa_lab.store import results

FIGURE_1 = "A2 (2406.03768), figure 1, as stated, of its own logs"
READ_BEFORE = "means of these logs had been read before the bound was chosen"
SHARED = f"{READ_BEFORE}; four scores unclipped, of two models on two tasks, stand under all logs"


class Logs:
    """Changes of score in a result, and what the searches gain."""

    def __init__(self, dataset):
        self.score, self.test = dataset.score, dataset.test
        self.high = results.config_of(dataset).high

    @cached_property
    def change(self):  # (end, log, rate)
        """The scores clipped less those unclipped, on validation."""
        return (self.score - self.score.sel(rate=0)).sel(rate=slice(0.01, None))

    def drastic(self, end):  # [logs]
        return self.change.sel(rate=slice(self.high, None)).mean("rate").sel(end=end).values

    @cached_property
    def gains(self):  # (end, log) twice
        """What the best rate on validation gains there, and on test."""
        best = self.score.max("rate") - self.score.sel(rate=0)
        return best, self.test.sel(edit="after") - self.test.sel(edit="before")


numbers = Logs


def statements(config) -> tuple[Statement, ...]:
    of_logs = partial(Statement, over="logs")
    rates = f"averaged over rates >= {config.high:g}"
    return (
        Statement(
            "deep_is_steadier",
            FIGURE_1,
            "Deep layers tolerate a sharp reduction better than shallow ones",
            f"the change of the score, {rates}, of a deep layer less that of the shallow one "
            "beside it in order,",
            at_least=0.0,
            over="pairs of logs of one model, task and part",
            note=READ_BEFORE,
            sample=lambda logs: logs.drastic("last") - logs.drastic("first"),
        ),
        of_logs(
            "deep_is_flat",
            FIGURE_1,
            "Deep layers can be reduced drastically without much degradation",
            f"the change of the score by clipping one of the last two layers, {rates},",
            at_least=-0.02,
            note=SHARED,
            sample=lambda logs: logs.drastic("last"),
        ),
        of_logs(
            "shallow_degrades",
            FIGURE_1,
            "After a sharp reduction of a shallow layer performance falls",
            f"the change of the score by clipping one of the first two layers, {rates},",
            at_most=0.0,
            note=SHARED,
            revision="any fall; a bound of -.02 left it undecided by .0002",
            sample=lambda logs: logs.drastic("first"),
        ),
        of_logs(
            "shallow_guesses",
            FIGURE_1,
            "Shallow layers sharply reduced leave the model guessing",
            "the score less .5 with one of the first two layers clipped, averaged over the two "
            "largest rates,",
            margin=0.03,
            note="GPT-J-6B is as near to .5 unclipped: a collapse is LLAMA2-7B's alone",
            sample=lambda logs: (
                (logs.score.sel(end="first").isel(rate=slice(-2, None)).mean("rate") - 0.5).values
            ),
        ),
        of_logs(
            "search_gains",
            "A2 (2406.03768), figure 4 and appendix C.5, as stated, of its own logs",
            "A searched rate gains on test what table C.5 has on average",
            "what the rate that is best on validation adds to the score on test,",
            at_least=0.019,
            note=f"first and last layers; {READ_BEFORE}",
            sample=lambda logs: logs.gains[1].values.ravel(),
        ),
        of_logs(
            "optimism",
            "derived here",
            "The gain on validation is in part won by selection",
            "the best gain on validation less that on test,",
            at_least=0.0,
            note=READ_BEFORE,
            sample=lambda logs: (logs.gains[0] - logs.gains[1]).values.ravel(),
        ),
    )
