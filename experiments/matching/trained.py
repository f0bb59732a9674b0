"""Configs of experiments whose prompts are those that their models are trained on. No jax."""

from dataclasses import dataclass

from experiments.models.named import Named
from experiments.models.specs import Task, restored
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import Bounded


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
