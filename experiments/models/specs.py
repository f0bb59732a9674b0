"""The models of the experiments on sparse regression: what is trained, on what, and how.

Our setting, modelled on Chen et al. 2408.04532, whose sizes are not published (THEORY II.1.2). A
prompt is read in units of its own and has empty slots to work in: ``prompts.normalised``,
``prompts.with_scratch``. E |w|² = 1 in every task.
"""

from dataclasses import dataclass
from typing import Literal

from lsa_lab.harness import checks

TASKS = ("sparse", "dense", "polynomial")
LOOKED_AT = ("depth 3", "depth 5", "long training")  # whose weights on the way are committed too


@dataclass(frozen=True)
class Family:
    """Architectures, heads for each layer, that one compiled program trains from several seeds.

    Heads that an architecture lacks are gated. The kernel "linear" has merged weights as wide as a
    token, unless ``key_width`` says otherwise.
    """

    architectures: tuple[tuple[int, ...], ...]
    task: Literal["sparse", "dense", "polynomial"] = "sparse"
    d: int = 4  # covariates; of a polynomial task the variables, whose features are the covariates
    sparsity: int = 1  # of a sparse task
    noise_std: float = 0.5
    lengths: tuple[int, ...] = (8, 16, 32)  # a training prompt has one of these at random
    kernel: Literal["linear", "softmax"] = "linear"
    key_width: int | None = None
    scratch: int = 4  # empty slots of a token
    seeds: int = 5
    steps: int = 30_000
    batch: int = 128
    learning_rate: float = 0.005
    clip: float = 0.1  # of the gradient's norm
    looks: int = 5  # equal parts of the training, after each of which weights are kept
    seed: int = 0

    def __post_init__(self):
        checks.one_of(self, "task", TASKS)
        checks.one_of(self, "kernel", ("linear", "softmax"))
        for name in ("d", "seeds", "steps", "batch", "looks"):
            checks.between(self, name, 1, None)
        checks.between(self, "sparsity", 1, self.d)
        checks.between(self, "scratch", 0, None)
        checks.divides(self, "looks", "steps")
        checks.each_between(self, "lengths", 1, None)
        if any(max(self.lengths) % n for n in self.lengths):
            raise ValueError(f"lengths = {self.lengths!r}: the longest is a multiple of each")
        if len({len(heads) for heads in self.architectures}) != 1:
            raise ValueError(f"architectures = {self.architectures!r}: all have the same depth")
        if min(min(heads) for heads in self.architectures) < 1:
            raise ValueError(f"architectures = {self.architectures!r}: every layer has a head")

    @property
    def depth(self) -> int:
        return len(self.architectures[0])

    @property
    def heads(self) -> int:
        """H, the most heads that any layer has."""
        return max(max(heads) for heads in self.architectures)

    @property
    def named(self) -> dict[str, int]:
        """The places of architectures that experiments compare: one head in each layer, all heads
        in the first layer alone, in all later ones alone, and the last architecture."""
        one, many = (1,) * (self.depth - 1), (self.heads,) * (self.depth - 1)
        wanted = {"single": (1, *one), "first": (self.heads, *one), "later": (1, *many)}
        wanted["full"] = self.architectures[-1]
        places = {heads: a for a, heads in enumerate(self.architectures)}
        return {name: places[heads] for name, heads in wanted.items() if heads in places}


def _laptop() -> dict[str, Family]:
    one, all4 = (1, 1, 1), (4, 4, 4)
    slow = dict(learning_rate=0.003, batch=32, clip=1.0, steps=9000)
    return {
        "depth 3": Family((one, (2, 2, 2), (4, 1, 1), (1, 4, 4), (4, 4, 1), all4)),
        "depth 5": Family(
            ((1,) * 5, (2,) * 5, (4, 1, 1, 1, 1), (1, 4, 4, 4, 4), (4, 4, 1, 1, 1), (4,) * 5),
            learning_rate=0.002,  # at 0.005 runs of five layers overflow
        ),
        "dense": Family((one, all4), task="dense"),
        "two of four": Family((all4,), sparsity=2),
        "polynomial": Family((all4,), task="polynomial", d=2),
        "narrow keys": Family(((4, 1, 1), all4), key_width=4),
        "little noise": Family((one, all4), noise_std=0.25),
        "much noise": Family((one, all4), noise_std=1.0),
        "no scratch": Family((all4,), scratch=0),
        "more scratch": Family((all4,), scratch=8),
        "long training": Family((all4,), steps=120_000),
        "softmax": Family((one, all4), kernel="softmax", key_width=9, **slow),
    }


def _smoke() -> dict[str, Family]:
    tiny = dict(lengths=(4, 8), seeds=2, steps=4, batch=4, looks=2, scratch=2, d=2)
    both = ((1, 1), (2, 1), (2, 2))
    return {
        name: Family(
            both if family.depth == 3 else ((1, 1, 1), (2, 2, 2)),
            task=family.task,
            kernel=family.kernel,
            key_width=None if family.key_width is None else 2,
            **tiny,
        )
        for name, family in _laptop().items()
        if name in ("depth 3", "depth 5", "polynomial", "softmax")
    }


def _paper() -> dict[str, Family]:
    """d = 16, s = 4, tokens of width 256, 1 to 8 heads, 3 to 6 layers; for a GPU."""
    sizes = dict(d=16, sparsity=4, scratch=239, lengths=(16, 32, 64), key_width=32)
    training = dict(steps=200_000, batch=256, learning_rate=1e-3)
    made = {}
    for depth in (3, 4, 5, 6):
        later = (1,) * (depth - 1), (8,) * (depth - 1)
        grid = tuple((heads, *rest) for rest in later for heads in (1, 2, 4, 8))
        made[f"depth {depth}"] = Family(grid, **sizes, **training)
        made[f"softmax, depth {depth}"] = Family(grid, kernel="softmax", **sizes, **training)
    all8 = ((1, 1, 1), (8, 8, 8))
    made["dense"] = Family(all8, task="dense", **sizes, **training)
    made["softmax"] = Family(all8, kernel="softmax", **sizes, **training)
    return made


FAMILIES = {"smoke": _smoke(), "laptop": _laptop(), "paper": _paper()}
