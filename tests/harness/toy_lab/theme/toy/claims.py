"""The means that the statements of `toy` are judged by."""


def samples(dataset):
    runs = dataset["mean"].values[:, 1:].mean(1)
    return {"mean": runs, "wrong": runs, "few": runs[:1]}
