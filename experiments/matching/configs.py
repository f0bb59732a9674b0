"""What configs of several experiments on matching have. No jax."""

from dataclasses import dataclass

from experiments.models.named import Named
from experiments.models.specs import Task, restored


@dataclass(frozen=True)
class Proxies:
    """Linear proxies, whose gradients along their training are matched, and the descent that
    answers."""

    d: int = 8
    depth: int = 16  # of the linear stack that answers: steps of gradient descent
    step: float = 0.15  # size of a step of that descent
    epochs: int = 10  # of the proxies' training
    batch: int = 64  # examples of the pool in a training step
    learning_rate: float = 0.1  # of the proxies
    saves: int = 10  # checkpoints of each training, at which gradients are matched


def task_of(config) -> Task:
    """What the models of a config are trained on, of this code or out of a result."""
    return restored(config.models[0][1]).task


def trained_length(config) -> int:
    """How many demonstrations the longest prompt in training has."""
    return max(task_of(config).lengths)


@dataclass(frozen=True)
class Trained:
    """Models of one task and one length, whose seeds are the runs."""

    models: Named  # the trained models

    @property
    def d(self) -> int:
        return task_of(self).d

    @property
    def n(self) -> int:
        """Demonstrations in training."""
        return trained_length(self)
