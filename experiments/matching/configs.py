"""What configs of several experiments on matching have. No jax."""

from dataclasses import dataclass
from typing import Annotated

from experiments.models.named import Named
from experiments.models.specs import Task, restored
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, at_least, between

Count = Annotated[int, at_least(1)]
AtLeastTwo = Annotated[int, at_least(2)]
Positive = Annotated[float, POSITIVE]


@dataclass(frozen=True)
class Proxies(Bounded):
    """Linear proxies, whose gradients along their training are matched, and the descent that
    answers."""

    d: Annotated[int, between(1, 64)] = 8
    depth: Count = 16  # of the linear stack that answers: steps of gradient descent
    step: Positive = 0.15  # size of a step of that descent
    epochs: Count = 10  # of the proxies' training
    batch: Count = 64  # examples of the pool in a training step
    learning_rate: Positive = 0.1  # of the proxies
    saves: Count = 10  # checkpoints of each training, at which gradients are matched


def task_of(config) -> Task:
    """What the models of a config are trained on, of this code or out of a result."""
    return restored(config.models[0][1]).task


def trained_length(config) -> int:
    """How many demonstrations the longest prompt in training has."""
    return max(task_of(config).lengths)


def check_names(config, names) -> None:
    if [name for name, _ in config.models] != [*names]:
        raise ValueError(f"models: {', '.join(names)}, in this order")


@dataclass(frozen=True)
class Trained(Bounded):
    """Models of one task and one length, whose seeds are the runs."""

    models: Named  # the trained models

    def __post_init__(self):
        super().__post_init__()
        for _, spec in self.models:
            if (spec.task.d, *spec.task.lengths) != (self.d, self.n):
                raise ValueError(f"models are trained on d = {self.d} and n = {self.n}")
            checks.between(self, "runs", 2, spec.training.seeds)

    @property
    def d(self) -> int:
        return task_of(self).d

    @property
    def n(self) -> int:
        """Demonstrations in training."""
        return trained_length(self)
