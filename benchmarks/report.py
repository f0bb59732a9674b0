"""RESULTS.md, from RESULTS.json: the figures of one run, as ratios of turns beside each other."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks import machine
from benchmarks.cases import BY_NAME, Case

REGRESSION = 1.2  # times what it was
SLOWER = "slower"

HEAD = """# What the workloads cost

Written by `make bench`, from RESULTS.json; do not edit. {when}, {facts}; {versions};
lsa_lab {commit}.

- Every form of a workload runs in a process of its own, and they take turns. A time is the median
  over turns with its quartiles, a ratio that of turns beside each other: above 1 ours is faster.
- *Ours* is `fit`, `analyses` and `selection` as a user calls them; *plain JAX* is what a careful
  newcomer writes (one prompt, `vmap`, `jit`), in JAX as it comes.
- Other processes took at most {others} of the cores; above {quiet:.0%} a workload is refused.
- A workload on weights that have not been fetched is left out: LM, loaded, without SmolLM2.
- Goals were set before.

{verdict}
"""

FLOOR = """The floor is the time of the products at the speed of one large product, of the random
numbers at that of one flat draw, and of the memory that no cache holds, one after the other. The
compiler counts the batch drawn, its loss and the gradient, a loop's body once.

"""


def compare(before: dict, now: dict) -> list[str]:
    """A line for each time of ours that both tables have: before, now, and their ratio.

    One that has become more than REGRESSION times as long ends in SLOWER.
    """
    lines, then = [], _medians(before)
    for name, seconds in _medians(now).items():
        if name in then:
            ratio = seconds / then[name]
            mark = f", {SLOWER}" if ratio > REGRESSION else ""
            lines.append(f"{name}: {then[name]:.3g} s, now {seconds:.3g} s, {ratio:.2f}{mark}")
    if before["head"]["facts"] != now["head"]["facts"]:
        lines.insert(0, f"before on another machine: {before['head']['facts']}")
    return lines


def _medians(table: dict) -> dict[str, float]:
    """Seconds by workload, place and form."""
    return {
        f"{name} {point}, {form}".replace(" ,", ","): float(seconds)
        for name, row in table["results"].items()
        for form, of_form in row["forms"].items()
        if form.startswith("ours")
        for point, seconds in zip(row["points"], np.median(of_form["wall"], axis=0), strict=True)
    }


def markdown(table: dict) -> str:
    """The whole file."""
    measured = [Measured(BY_NAME[name], row) for name, row in table["results"].items()]
    slow = [
        f"{row.case.name} {row.case.points[i]}".strip() for row in measured for i in row.slower()
    ]
    verdict = f"**Slower than its plain reference: {'; '.join(slow) or 'none'}.**"
    shares = [row.result["others"][0] for row in measured]
    others = "an unknown share" if None in shares else f"{max(shares):.1%}"
    text = HEAD.format(verdict=verdict, others=others, quiet=machine.QUIET, **table["head"])
    for title, table in (
        ("Ratios", ratios(measured)),
        ("Every form", forms(measured)),
        ("Operations, and the share of the machine's limit", floors(measured)),
        ("The machine's limits, in the same turns", limits(measured)),
    ):
        text += f"\n## {title}\n\n{table}"
    return text


@dataclass(frozen=True)
class Measured:
    """A workload and its turns."""

    case: Case
    result: dict

    @cached_property
    def wall(self) -> dict[str, np.ndarray]:  # by form, [turns, points], seconds
        return {name: np.array(form["wall"]) for name, form in self.result["forms"].items()}

    @property
    def ours(self) -> list[str]:
        return [name for name in self.wall if name.startswith("ours")]

    def ratio(self, name: str, other: str) -> np.ndarray | None:  # [turns, points]
        """The time of the fastest form that begins with ``other``, over that of ``name``."""
        rivals = [wall for rival, wall in self.wall.items() if rival.startswith(other)]
        return np.min(rivals, axis=0) / self.wall[name] if rivals else None

    def slower(self) -> list[int]:
        """Points at which the fastest plain form is faster in three turns of four."""
        ratio = self.ratio("ours", "plain")
        if ratio is None:
            return []
        return [i for i, high in enumerate(np.percentile(ratio, 75, axis=0)) if high < 1]

    @cached_property
    def rates(self) -> list[float]:
        return machine.rates(np.median(self.wall["limits"], axis=0))

    def floors(self) -> np.ndarray:  # [points], seconds
        """Products, random numbers and memory one after the other, each at the machine's best."""
        gflops, copied, _, normal = self.rates
        return np.array(
            [
                work.flops / gflops / 1e9 + work.normals * normal / 1e9 + work.moved / copied / 1e9
                for work in self.case.work
            ]
        )


def ratios(measured: list[Measured]) -> str:
    rows = [["workload", "form", "time", "plain JAX / ours", "goal"]]
    for row in measured:
        for point, label in enumerate(row.case.points):
            for name in row.ours:
                is_first = name == "ours"
                marked = " **slower**" if is_first and point in row.slower() else ""
                rows.append(
                    [
                        f"{row.case.name} {label}".strip(),
                        name,
                        f"{_time(row.wall[name][:, point])} {row.case.unit.partition(' ')[2]}",
                        _ratio(row.ratio(name, "plain"), point) + marked,
                        row.case.goal if is_first and point == 0 else "",
                    ]
                )
    return _table(rows)


def forms(measured: list[Measured]) -> str:
    rows = [["workload", "form", "time", "cores busy", "compiled in", "peak memory"]]
    for row in measured:
        for name, form in row.result["forms"].items():
            if name == "limits":
                continue
            busy = np.median(np.array(form["processor"]) / np.array(form["wall"]), axis=0)
            for point, label in enumerate(row.case.points):
                rows.append(
                    [
                        f"{row.case.name} {label}".strip(),
                        name,
                        _time(row.wall[name][:, point]),
                        f"{busy[point]:.1f}",
                        f"{form['compile']:.1f} s" if point == 0 else "",
                        f"{form['peak']:.0f} MiB" if point == 0 else "",
                    ]
                )
    titles = "".join(f"- {row.case.name}: {row.case.title}\n" for row in measured)
    return f"{titles}\n{_table(rows)}"


def floors(measured: list[Measured]) -> str:
    rows = [["workload", "by hand", "the compiler's", "normals", "must move", "floor", "ours"]]
    for row in measured:
        counts = row.result["flops"]
        floor, wall = row.floors(), np.median(row.wall["ours"], axis=0)
        for point, (label, work) in enumerate(zip(row.case.points, row.case.work, strict=True)):
            if not work.flops:
                continue
            count = counts[point]
            rows.append(
                [
                    f"{row.case.name} {label}".strip(),
                    f"{work.flops / 1e9:.3g} GFLOP",
                    "-" if count is None else f"{count / 1e9:.3g} GFLOP",
                    f"{work.normals:,.0f}".replace(",", " ") if work.normals else "-",
                    f"{work.moved / 1e9:.3g} GB" if work.moved else "-",
                    f"{floor[point] * 1e3:.3g} ms",
                    f"{floor[point] / wall[point]:.0%} of the limit",
                ]
            )
    return FLOOR + _table(rows)


def limits(measured: list[Measured]) -> str:
    rows = [["workload", *machine.RATES]]
    rows += [[row.case.name, *(f"{rate:.3g}" for rate in row.rates)] for row in measured]
    return _table(rows)


def _time(seconds: np.ndarray) -> str:
    """Median and quartiles, in seconds above one."""
    scale, unit = (1.0, "s") if np.median(seconds) >= 1 else (1e3, "ms")
    low, middle, high = np.percentile(seconds * scale, (25, 50, 75))
    return f"{middle:.3g} ({low:.3g} to {high:.3g}) {unit}"


def _ratio(ratio: np.ndarray | None, point: int) -> str:
    if ratio is None:
        return "-"
    low, middle, high = np.percentile(ratio[:, point], (25, 50, 75))
    return f"{middle:.3g} ({low:.3g} to {high:.3g})"


def _table(rows: list[list[str]]) -> str:
    head, *body = rows
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *body))
