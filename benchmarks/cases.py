"""The workloads: their sizes, forms, operations and goals."""

from dataclasses import dataclass, field

from benchmarks import flops, waits


@dataclass(frozen=True)
class Work:
    """What a unit needs whatever the program; at the machine's best that takes the floor."""

    flops: float
    normals: float = 0  # random numbers
    moved: float = 0  # bytes that must be read or written, beyond any cache


@dataclass(frozen=True)
class Case:
    """One workload. Forms are builders by their names; those that begin with "ours" are ours."""

    name: str
    title: str
    sizes: dict
    forms: dict[str, str]
    work: tuple[Work, ...]  # one for each point
    unit: str = "ms a step"
    own: dict[str, dict] = field(default_factory=dict)  # sizes of one form alone
    points: tuple[str, ...] = ("",)
    goal: str = ""
    turns: int = 5
    fetched: str = ""  # weights without which there is nothing to measure


def _training(flops_of_prompt: int, batch: int, normals: int, runs: int = 1) -> Work:
    prompts = batch * runs
    return Work(flops.BACKWARD_TOO * flops_of_prompt * prompts, normals * prompts)


def _linear(n: int, d: int, layers: int, batch: int, runs: int = 1) -> Work:
    return _training(flops.linear_attention(n, d, layers), batch, (n + 2) * d, runs)


def _linear_case(name: str, sizes: dict, steps: dict[str, dict], **more) -> Case:
    title = "linear attention, n {n}, d {d}, L {layers}, batch {batch}".format(**sizes)
    forms = {
        "ours": "linear:ours",
        "ours, moments drawn": "linear:ours_moments",
        "plain JAX": "linear:plain",
    }
    own = {form: steps.get(form, steps["ours"]) for form in forms}
    return Case(name, title, sizes, forms, (_linear(**sizes),), own=own, **more)


def _softmax_case(name: str, title: str, sizes: dict, steps: dict[str, dict], **more) -> Case:
    forms = {"ours": "softmax:ours", "plain JAX": "softmax:plain"}
    n, d, causal = sizes["n"], sizes["d"], sizes["causal"]
    tokens, read = (2 * n + 1, n + 1) if causal else (n + 1, 1)
    width = sizes["width"]
    prompt = flops.transformer(tokens, read, d + 1, sizes["layers"], width, 4 * width)
    work = _training(prompt, sizes["batch"], (n + 2) * d)
    return Case(name, title, sizes, forms, (work,), own=steps, **more)


W1 = dict(n=20, d=5, layers=3, batch=1000)
LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
W6 = dict(d=20, layers=3, batch=64)
W7 = dict(n=20, d=10, seeds=8, batch=1000, layers=4, width=32, heads=2)
W7 |= dict(ranks=[30, 26, 22, 18, 14, 10, 6, 2], shots=[4, 10, 20])
W8 = dict(n=1024, d=20, layers=4, units=50)
POOL = dict(m=10_000, queries=100, d=20, layers=4)
W9 = dict(m=10_000, p=4096, size=128)
W10 = dict(n=32, d=8, width=32, layers=2, batch=128)
W10 |= dict(kinds=["additive", "delta", "gated_delta", "mesa"], units=[10] * 4)
W11 = W10 | dict(n=4095, layers=1, batch=1, kinds=["additive", "delta"], units=[10] * 2)
LM = dict(shapes=[[1, 303], [4, 256]])


def _growth(by: str, more: dict[str, tuple[int, ...]]) -> Case:
    """W1's step at other sizes, one of them changed at a time."""
    changed = [{}, *({name: value} for name, values in more.items() for value in values)]
    places = [W1 | change for change in changed]
    normals = [(p["n"] + 2) * p["d"] if by == "prompts" else (p["d"] + 2) ** 2 for p in places]
    lengths = [p["n"] if by == "prompts" else p["d"] + 1 for p in places]  # rows of the factor
    work = [
        flops.linear_attention(n, p["d"], p["layers"]) for n, p in zip(lengths, places, strict=True)
    ]
    return Case(
        f"growth, {by}",
        f"{by} drawn, their loss and its gradient: W1, and one of its sizes changed",
        dict(places=places, by=by),
        {"ours": "linear:ours_growth"},
        tuple(
            _training(count, place["batch"], draws)
            for count, place, draws in zip(work, places, normals, strict=True)
        ),
        "ms",
        points=tuple(
            ", ".join(f"{k} {v}" for k, v in change.items()) or "W1" for change in changed
        ),
        turns=3,
    )


def _clipping(n: int, d: int, seeds: int, batch: int, layers: int, width: int, heads: int,
              ranks: list[int], shots: list[int]) -> Work:  # fmt: skip
    cells = len(ranks) * layers * 5 * seeds * batch
    prompts = (flops.transformer(n + 1, 1, d + 1, layers, width, 4 * width) for n in shots)
    return Work(cells * sum(prompts))


CASES = (
    _linear_case(
        "W1",
        W1,
        {
            "ours": dict(chunk=100),
            "plain JAX": dict(steps=25),
        },
        goal="1.0 ms",
    ),
    _linear_case(
        "W2, L = 1",
        dict(n=10, d=10, layers=1, batch=2048),
        {"ours": dict(chunk=50), "plain JAX": dict(steps=20)},
    ),
    _linear_case(
        "W2, L = 5",
        dict(n=10, d=10, layers=5, batch=2048),
        {"ours": dict(chunk=20), "plain JAX": dict(steps=8)},
        goal="moments not slower",
    ),
    _softmax_case(
        "W3, 3 x 64",
        "GPT-2's layers on interleaved tokens, d 20, 41 points, batch 64, 2 heads",
        dict(causal=True, n=40, d=20, batch=64, layers=3, width=64, heads=2),
        {"ours": dict(chunk=5), "plain JAX": dict(steps=8)},
    ),
    _softmax_case(
        "W3, 12 x 256",
        "GPT-2's layers on interleaved tokens, d 20, 41 points, batch 64, 8 heads",
        dict(causal=True, n=40, d=20, batch=64, layers=12, width=256, heads=8),
        {"ours": dict(chunk=1), "plain JAX": dict(steps=1)},
        turns=2,
    ),
    _softmax_case(
        "W4",
        "encoder, d 16, n 64, batch 64, 3 layers of width 256, 8 heads",
        dict(causal=False, n=64, d=16, batch=64, layers=3, width=256, heads=8),
        {"ours": dict(chunk=3), "plain JAX": dict(steps=3)},
    ),
    Case(
        "W5",
        "32 runs of W1",
        W1 | dict(runs=32),
        {"ours": "linear:ours", "plain JAX": "linear:plain"},
        (_linear(**W1, runs=32),),
        "ms a step of all",
        {
            "ours": dict(chunk=25),
            "plain JAX": dict(steps=2),
        },
        goal="16 ms, compiled once",
    ),
    Case(
        "W6",
        "gradient of linear attention over n, d 20, L 3, batch 64",
        W6 | dict(lengths=LENGTHS),
        {
            "ours": "linear:ours_gradient",
            "plain JAX, linear": "linear:plain_gradient",
            "plain JAX, quadratic": "linear:plain_gradient",
        },
        tuple(
            Work(flops.BACKWARD_TOO * W6["batch"] * flops.linear_attention(n, 20, 3))
            for n in LENGTHS
        ),
        "ms",
        {f"plain JAX, {form}": dict(form=form) for form in ("linear", "quadratic")},
        points=tuple(f"n {n}" for n in LENGTHS),
        goal="not slower than either plain form at any n",
    ),
    Case(
        "W7",
        "clipping grid, 3 840 cells: 8 models, 4 layers, 5 modules, 8 rates, 3 lengths",
        W7,
        {"ours": "analyses:ours_clipping", "plain JAX": "analyses:plain_clipping"},
        (_clipping(**W7),),
        "ms",
        goal="16 s",
        turns=2,
    ),
    Case(
        "W8",
        "flow of 1 024 demonstrations, linear attention, d 20, L 4",
        W8,
        {"ours": "analyses:ours_flow", "plain JAX": "analyses:plain_flow"},
        (Work(flops.flow_by_the_moment(1024, 20, 4)),),
        "ms",
    ),
    Case(
        "W8, pool",
        "flow from each of 10 000 demonstrations to each of 100 queries, d 20, L 4",
        POOL,
        {"ours": "analyses:ours_pool", "plain JAX": "analyses:plain_pool"},
        (Work(2 * 10_000 * 100 * 21**2),),
        "ms",
        {"ours": dict(units=2), "plain JAX": dict(share=50)},
    ),
    Case(
        "W9",
        "matching 128 of m 10 000 gradients, p 4 096",
        W9,
        {"ours": "analyses:ours_matching", "plain JAX": "analyses:plain_matching"},
        (Work(flops.matching(**W9), moved=W9["size"] * W9["m"] * W9["p"] * 4),),
        "ms",
        goal="1 s",
    ),
    Case(
        "W10",
        "gradient of recurrent layers, bound tokens, n 32, d 8, 2 layers of width 32, batch 128",
        W10,
        {"ours": "recurrent:ours", "plain JAX": "recurrent:plain"},
        (Work(0),) * 4,
        "ms",
        points=tuple(W10["kinds"]),
        goal="15 ms, mesa 40",
    ),
    Case(
        "W11",
        "gradient of one recurrent layer on one prompt of 4 096 tokens, d 8, width 32",
        W11,
        {"ours": "recurrent:ours", "plain JAX": "recurrent:plain"},
        (Work(0),) * 2,
        "ms",
        {"plain JAX": dict(units=[1] * 2)},
        points=tuple(W11["kinds"]),
        goal="delta at most twice additive",
    ),
    _growth(
        "prompts",
        {"n": (80, 320, 1280), "d": (10, 16, 20, 40), "layers": (1, 6, 12), "batch": (4000,)},
    ),
    _growth("moments", {"n": (10**6,), "d": (10,), "layers": (6,)}),
    Case(
        "habits",
        "at W1's sizes, what docs/performance.md advises and the other way",
        W1,
        {"ours": "linear:ours_habits", "ours, the other way": "linear:ours_habits"},
        (Work(0),) * 3,
        "ms",
        {"ours": dict(other=False), "ours, the other way": dict(other=True)},
        points=("compiler options", "prompts drawn flat", "a batch at once"),
    ),
    Case(
        "LM",
        "a decoder of SmolLM2-135M's shape, float32",
        LM,
        {"ours": "lm:ours"},
        (Work(0),) * 4,
        "s",
        points=("1 x 303 tokens", "4 x 256 tokens", "100 questions", "gradient, 191 tokens"),
        turns=3,
    ),
    Case(
        "LM, reused",
        "100 questions of 32 tokens after 180: demonstrations run once, or with every question",
        {},
        {"ours": "lm:ours_reused"},
        (Work(0),) * 2,
        "s",
        points=("once", "every time"),
        turns=1,
    ),
    Case(
        "LM, alone",
        "the same: questions with a layer edited, prefix gradients, SVDs in float64",
        {},
        {"ours": "lm:ours_alone"},
        (Work(0),) * 5,
        "s",
        points=(
            *("layer 30 edited", "layer 21 edited", "layer 1 edited", "8 prefix gradients"),
            "210 SVDs",
        ),
        turns=2,
    ),
    Case(
        "LM, loaded",
        "SmolLM2's GGUF dequantised, and mapped from the cache as it was left there",
        {},
        {"ours": "lm:ours_loaded"},
        (Work(0),) * 2,
        "s",
        points=("a GGUF", "and again"),
        turns=2,
        fetched="smollm2",
    ),
    Case(
        "waits",
        "what a person waits for, until it has ended; the first turn fills the caches",
        {},
        {"ours": "waits:ours"},
        (Work(0),) * len(waits.NAMES),
        "s",
        points=waits.NAMES,
        goal="an import below 1 s, a first fit below 1 s, a second below .1 s beside its steps",
        turns=2,
    ),
)
BY_NAME: dict[str, Case] = {case.name: case for case in CASES}


def choose(only: str | None) -> list[Case]:
    """The workloads that ``only`` begins: W3 names both of its sizes, nothing names all."""
    cases = [
        case for case in CASES if not only or case.name.split(",")[0] == only or case.name == only
    ]
    if not cases:
        raise SystemExit(f"no workload {only}: one of {', '.join(BY_NAME)}")
    return cases
