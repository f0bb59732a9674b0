"""What `toy` judges: the means of its runs."""

from lsa_lab.judging.claims import Statement


def numbers(dataset):
    """The mean of each run, [R]."""
    return dataset["mean"].values[:, 1:].mean(1)


def statements(config) -> tuple[Statement, ...]:
    small = dict(says="The mean is small, whether a < b or a | b", measured="the mean", at_most=9)
    large = dict(says="It is large", measured="the mean", at_least=9)
    few = dict(says="Nobody knows", measured="one mean", statistic="median", at_most=9)
    return (
        Statement("mean", "derived here", sample=lambda means: means, **small),
        Statement("wrong", "derived here", sample=lambda means: means, **large),
        Statement(
            "few", "derived here", note=f"n = {config.n}", sample=lambda means: means[:1], **few
        ),
    )
