"""The sizes and the statements of `clipping_curves`, fixed before its first run."""

from dataclasses import dataclass

from experiments.clipping.transformer_config import PAPER, PARTS, SMOKE, TransformerConfig
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

# All of A2's modules at the trained length; at the others those of its figures, PARTS.
MODULES = {"W_q": "w_q", "W_k": "w_k", "W_v": "w_v", "W_o": "w_o", **PARTS}
MODULES |= {"MLP in": "mlp_in", "MLP out": "mlp_out"}
DROPPED = 1.0  # the rate that stands for rank 0


@dataclass(frozen=True)
class Config(TransformerConfig):
    """The mean risk of trained transformers after one module of one layer is clipped.

    Shots 4 and 10 are A2's. It also has 0, at which attention over demonstrations reads nothing.
    Its rates 0.99 and 0.995 keep as little of a matrix of rank 32 as 0.95: one direction.
    """

    shots: tuple[int, ...] = (4, 10, 40)  # beside the n of training, some of them fewer, some more
    rates: tuple[float, ...] = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    prompts: int = 500  # the same for all runs and edits
    ends: int = 2  # layers that are called shallow, and deep
    high: float = 0.75  # from this rate on clipping is drastic
    seed: int = 0
    # Criteria, on changes of the risk over the risk unclipped unless they say otherwise.
    flat: float = 0.1  # at most this is not much
    gain: float = 0.01  # a fall by at least this is an improvement

    def __post_init__(self):
        super().__post_init__()
        checks.each_between(self, "shots", 1, None)
        few, many = min(self.shots), max(self.shots)
        if list(self.shots) != sorted({*self.shots} - {self.n}) or not few < self.n < many:
            nearest = tuple(sorted({*self.shots, max(1, self.n // 2), 2 * self.n} - {self.n}))
            raise ValueError(
                f"shots = {self.shots!r}: choose increasing numbers, some below n = {self.n} and "
                f"some above; nearest {nearest}"
            )
        checks.each_between(self, "rates", 0.0, 0.999)
        if list(self.rates) != sorted({*self.rates}):
            raise ValueError(
                f"rates = {self.rates!r}: choose increasing rates; nearest "
                f"{tuple(sorted({*self.rates}))}"
            )
        checks.between(self, "prompts", 2, None)
        checks.between(self, "ends", 1, self.depth // 2)
        checks.between(self, "high", min(self.rates), max(self.rates))
        for name in ("flat", "gain"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(**SMOKE, shots=(2, 8), rates=(0.5, 0.75), prompts=16, ends=1),
    "laptop": Config(),
    "paper": Config(
        **PAPER,
        shots=(4, 10, 20, 80),
        rates=(0.1, 0.25, 0.5, 0.625, 0.75, 0.875, 0.9, 0.95, 0.99),
        prompts=10_000,
    ),
}


def statements(config) -> tuple[Statement, ...]:
    paper, few, many = "A2 (2406.03768)", min(config.shots), max(config.shots)
    shallow, deep = f"the first {config.ends} layers", f"the last {config.ends} layers"
    high = f"averaged over rates >= {config.high:g}"
    moved = "the change of the risk, relative,"
    listed = []
    for part, place in zip(PARTS, ("In attention", "In MLPs"), strict=True):
        name = part.lower()
        listed += [
            Statement(
                f"{name}_deep_bears_more",
                f"{paper}, figure 1",
                f"{place} shallow layers tolerate less clipping than deep ones",
                f"log10 of the risk with {shallow} clipped over that with {deep} clipped, one at a "
                f"time, {high},",
                at_least=0.0,
            ),
            Statement(
                f"{name}_deep_is_flat",
                f"{paper}, figure 1; its logs: +.003 of accuracy",
                f"{place} deep layers can be reduced drastically without much degradation",
                f"{moved} of {deep}, {high},",
                at_most=config.flat,
            ),
            Statement(
                f"{name}_few_shots_collapse_less",
                f"{paper}, figure 2",
                f"{place} with fewer shots, clipping shallow layers makes performance fall less",
                f"the rise of the risk over d at {few} shots less that at {config.n}, {shallow}, "
                f"{high},",
                at_most=0.0,
            ),
        ]
    for name, shots in {"few": few, "trained": config.n, "many": many}.items():
        listed.append(
            Statement(
                f"helps_{name}",
                f"{paper}, figures 1 and 2",
                f"At {shots} shots some clipping improves the model",
                f"{moved} by the edit of attention or MLP that is best for the other runs",
                at_most=-config.gain,
            )
        )
    keys_alone = Statement(
        "keys_alone",
        f"{paper}, B.3",
        "Clipping the key projection of a shallow layer alone changes next to nothing",
        f"{moved} of {shallow}, {high},",
        at_most=config.flat,
    )
    return (*listed, keys_alone)
