"""The measuring tool: its counts, its refusal, its page, and that the forms do the same work."""

import json
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import __main__ as program
from benchmarks import analyses, cases, flops, linear, machine, report, softmax, turns
from benchmarks import recurrent as layers_of_today
from lsa_lab import prompts
from lsa_lab.analyses import amplification
from lsa_lab.models import linear_attention, recurrent, transformer
from lsa_lab.models.trace import predict
from lsa_lab.selection.gradient_matching import match
from lsa_lab.tasks.linear import LinearTask, sample


class Counting:
    """Matrix products, and how many operations they were."""

    def __init__(self):
        self.flops = 0

    def __call__(self, a, b):
        columns = 1 if b.ndim == 1 else b.shape[1]
        rows = 1 if a.ndim == 1 else a.shape[0]
        self.flops += 2 * rows * a.shape[-1] * columns
        return a @ b


def by_tokens(mul, kq, pv, tokens):
    for q, p in zip(kq[:-1], pv[:-1], strict=True):
        moment = mul(tokens[:-1].T, tokens[:-1])
        tokens = tokens + mul(tokens, mul(mul(p, moment), q).T)
    return last_layer(mul, kq[-1], pv[-1], tokens)


def by_scores(mul, kq, pv, tokens):
    for q, p in zip(kq[:-1], pv[:-1], strict=True):
        scores = mul(mul(tokens, q.T), tokens[:-1].T)
        tokens = tokens + mul(mul(scores, tokens[:-1]), p.T)
    return last_layer(mul, kq[-1], pv[-1], tokens)


def last_layer(mul, kq, pv, tokens):
    scores = mul(tokens[:-1], mul(kq, tokens[-1]))
    return -(tokens[-1, -1] + mul(pv[-1], mul(scores, tokens[:-1])))


def by_moments(mul, kq, pv, tokens):
    moment, query, w = mul(tokens[:-1].T, tokens[:-1]), tokens[-1], None
    for q, p in zip(kq[:-1], pv[:-1], strict=True):
        if w is None:
            w = np.eye(len(moment)) + mul(mul(p, moment), q)
            continue
        now = mul(mul(w, moment), w.T)
        w = w + mul(mul(mul(p, now), q), w)
    if w is None:
        return -mul(pv[-1, -1], mul(moment, mul(kq[-1], query)))
    query = mul(w, query)
    read = mul(w, mul(moment, mul(w.T, mul(kq[-1], query))))
    return -(query[-1] + mul(pv[-1, -1], read))


@pytest.mark.parametrize("form", [by_tokens, by_moments, by_scores])
@pytest.mark.parametrize("layers", [1, 3])
def test_operations_by_hand_are_those_of_the_products(form, layers):
    n, d = 7, 3
    params = linear_attention.init(jax.random.key(0), layers, 1, d, 0.5)
    tokens = prompts.tokens(sample(jax.random.key(1), LinearTask(n, d)))
    counting = Counting()
    kq, pv = np.asarray(params.w_kq[:, 0]), np.asarray(params.w_pv[:, 0]) / n
    answer = form(counting, kq, pv, np.asarray(tokens))
    np.testing.assert_allclose(answer, predict(linear_attention.forward(params, tokens)))
    assert counting.flops == getattr(flops, form.__name__)(n, d, layers)


def test_operations_of_a_transformer():
    """Two layers of width 8 and an MLP of 32 on 5 tokens of width 3, the last of them read."""
    qkvo, scores_and_read, mlp = 4 * 8 * 8, 2 * 5 * 8, 2 * 8 * 32
    whole = 5 * (qkvo + scores_and_read + mlp)
    last = 5 * 2 * 8 * 8 + (2 * 8 * 8 + scores_and_read + mlp)
    assert flops.transformer(5, 1, 3, 2, 8, 32) == 2 * (whole + last + 5 * 3 * 8 + 8)


def reading(clock, busy, kernel=0.0, **processes):
    rows = {int(name[1:]): (name, seconds) for name, seconds in processes.items()}
    return machine.Reading(clock, busy, kernel, rows)


def test_the_share_of_others(monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: {0, 1})
    before = reading(100.0, 50.0, p1=10.0, p2=30.0, p3=5.0)  # p3 is stopped, p4 starts
    after = reading(110.0, 64.0, p1=19.0, p2=32.0, p3=5.0, p4=3.0)
    share, busiest = machine.others(before, after, own={1, 4})
    assert (share, busiest) == (pytest.approx((14 - 9 - 3) / 20), "p2")
    assert machine.others(before, after._replace(kernel=1.5), own={1, 4})[0] == pytest.approx(0.025)
    assert machine.others(before, after, own={1, 2, 4})[0] == 0


def test_counters_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: {1})
    monkeypatch.setattr(machine, "_TICK", 100)
    rows = ("cpu 9 9 9 9 9 9 9 9", "cpu0 9 9 9 9 9 9 9 9", "cpu1 100 20 30 7 7 3 2 45")
    (tmp_path / "stat").write_text("\n".join(rows))
    for pid, name, parent, ticks in ((17, "a (b) c", 1, 150), (19, "kswapd0", 2, 20)):
        (tmp_path / f"{pid}").mkdir()
        row = f"{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 50 0 0 20"
        (tmp_path / f"{pid}" / "stat").write_text(row)
    (tmp_path / "18").mkdir()  # it has just ended
    read = machine.read(tmp_path)
    assert read[1:] == (2.0, 0.7, {17: ("a (b) c", 2.0)})
    assert machine.read(tmp_path / "nowhere") is None


def test_a_loaded_machine_is_refused_by_name():
    shares = iter([0.3, 0.01, 0.3, 0.2])
    attempt = lambda case, torch: {"others": (next(shares), "a game")}  # noqa: E731
    assert turns.measured(cases.CASES[0], "", attempt)["others"][0] == 0.01
    with pytest.raises(machine.LoadedError, match=r"W1 refused: .* 20% of the cores, a game"):
        turns.measured(cases.CASES[0], "", attempt)


def result(case, slower=(), torch=True):
    """Three turns in which ours takes 1 ms a point, 3 where it is slower, and rivals take 2."""
    rng = np.random.default_rng(0)
    points = len(case.points)

    def form(milliseconds):
        wall = 1e-3 * milliseconds * rng.uniform(0.99, 1.01, (3, points))
        facts = {"compile": 0.5, "peak": 300.0, "versions": "jax 0"}
        return facts | {"wall": wall.tolist(), "processor": wall.tolist()}

    ours = [3.0 if point in slower else 1.0 for point in range(points)]
    names = [name for name in case.forms if torch or not name.startswith("torch")]
    forms = {name: form(np.array(ours) if name == "ours" else 2.0) for name in names}
    limits = {"wall": [[0.07, 0.01, 0.04, 0.02]] * 3, "versions": "jax 0"}
    others = {"flops": [1e6] * points, "others": (0.012, "x")}
    return {"case": case.name, "forms": forms | {"limits": limits}} | others


def test_the_page_flags_what_is_slower():
    results = {case.name: result(case, (2,) if case.name == "W6" else ()) for case in cases.CASES}
    head = {"when": "today", "facts": "here", "versions": "jax 0", "commit": "0"}
    text = report.markdown(list(cases.CASES), results, head)
    assert "**Slower than its plain reference: W6 n 64.**" in text
    assert "at most 1.2% of the cores" in text
    ratios = text.partition("## Every form")[0].splitlines()
    (row,) = [line for line in ratios if line.startswith("| W6 n 64 | ours |")]
    _, _, _, _, ratio, *rest = row.split("|")
    assert 0.6 < float(ratio.split()[0]) < 0.7
    assert ratio.endswith("**slower** ")
    assert "".join(rest).split() == ["-"]
    assert text.count("**slower**") == 1
    assert all(case.title in text for case in cases.CASES)
    widths = {line.count("|") for line in text.splitlines() if line.startswith("| W1 ")}
    assert widths == {8, 7, 6}  # tables of seven, six and five columns
    only = report.markdown([cases.CASES[0]], {"W1": result(cases.CASES[0], torch=False)}, head)
    assert "reference: none" in only


def test_turns_are_kept_until_all_are_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(program, "RESULTS", tmp_path / "RESULTS.md")
    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    loaded, calls = {"W4"}, []

    def measured(case, torch):
        calls.append(case.name)
        if case.name in loaded:
            raise machine.LoadedError(f"{case.name} refused")
        return result(case)

    monkeypatch.setattr(turns, "measured", measured)
    with pytest.raises(SystemExit):
        program.main()
    assert "W4 refused" in capsys.readouterr().err
    assert not program.RESULTS.exists()
    loaded.clear(), calls.clear()
    program.main()
    assert calls == ["W4"]
    assert "## Ratios" in program.RESULTS.read_text()
    assert not list((tmp_path / "benchmarks").iterdir())


def test_a_form_without_its_packages_is_absent():
    sizes = dict(n=3, d=2, layers=1, batch=4, steps=2)
    worker = turns.Worker(sys.executable, "default", "torch_forms:linear", sizes, "").ready()
    assert worker.absent or len(worker.ask("turn")["points"]) == 1
    worker.close()


SMALL = dict(n=4, d=2, layers=1, batch=3)
NETWORK = dict(n=3, d=2, layers=1, width=4, heads=2)
GRID = NETWORK | dict(seeds=1, batch=5, ranks=[3, 1], shots=[2])
BUILT = {
    "ours": lambda: linear.ours(**SMALL, chunk=2, runs=2),
    "moments drawn": lambda: linear.ours_moments(**SMALL, chunk=2),
    "gradient": lambda: linear.ours_gradient(2, 1, 3, [4, 8]),
    "plain": lambda: linear.plain(**SMALL, steps=2, runs=2),
    "encoder": lambda: softmax.ours(False, **NETWORK, batch=3, chunk=1),
    "clipping": lambda: analyses.ours_clipping(**GRID),
    "plain clipping": lambda: analyses.plain_clipping(**GRID),
    "streamed": lambda: analyses.ours_streamed(20, 8, 3, 10),
}


@pytest.mark.parametrize("name", BUILT)
def test_a_turn_says_what_every_point_takes(name):
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        form = BUILT[name]()
        spent = np.array(form.turn())
    assert spent.shape == (len(form.units), 2)
    assert (spent[:, 0] > 0).all()


def test_the_plain_forms_of_linear_attention_say_what_ours_does():
    params = linear_attention.init(jax.random.key(0), 3, 1, 4, 0.3)
    tokens = prompts.tokens(sample(jax.random.key(1), LinearTask(6, 4)))
    pairs = zip(params.w_kq[:, 0], params.w_pv[:, 0], strict=True)
    plain = [{"kq": kq, "pv": pv} for kq, pv in pairs]
    with jax.numpy_rank_promotion("allow"):
        answers = [jax.jit(form)(plain, tokens) for form in linear.PLAIN.values()]
    np.testing.assert_allclose(answers, predict(linear_attention.forward(params, tokens)), 1e-10)


@pytest.mark.parametrize("causal", [False, True])
def test_the_plain_transformer_says_what_ours_does(causal):
    n, d, layers, width, heads = 3, 2, 2, 4, 2
    length = 2 * n + 1 if causal else None
    config = softmax.config_of(causal, n, d, layers, width, heads)
    read = transformer.predict_prefixes if causal else transformer.predict
    rng = np.random.default_rng(0)

    @jax.jit
    def both(plain, tokens):
        ours = read(ours_of(plain, causal), tokens, config)
        return softmax.plain_predict(plain, tokens, causal), ours

    weights = partial(softmax.plain_weights, jax.random.key(0), layers, width, heads, d + 1, length)
    plain = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), jax.eval_shape(weights))
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        tokens, _ = softmax.plain_prompt(jax.random.key(1), n, d, causal)
        np.testing.assert_allclose(*both(plain, tokens), rtol=1e-10)


def ours_of(plain, causal):
    """A newcomer's dicts as ``transformer.Params``."""
    layers = jax.tree.map(lambda *leaves: jnp.stack(leaves), *plain["layers"])
    root = layers["q"].shape[-1] ** 0.5
    params = transformer.Params(
        w_q=layers["q"].transpose(0, 2, 3, 1) / root,
        w_k=layers["k"].transpose(0, 2, 3, 1),
        w_v=layers["v"].transpose(0, 2, 3, 1),
        w_o=layers["o"].transpose(0, 1, 3, 2),
        read_in=plain["read_in"].T,
        read_out=plain["read_out"],
        attention_norm_scale=layers["norm"]["scale"],
        attention_norm_offset=layers["norm"]["offset"],
        mlp_norm_scale=layers["mlp_norm"]["scale"],
        mlp_norm_offset=layers["mlp_norm"]["offset"],
        mlp_in=layers["in"].swapaxes(1, 2),
        mlp_in_bias=layers["in_bias"],
        mlp_out=layers["out"].swapaxes(1, 2),
        mlp_out_bias=layers["out_bias"],
    )
    if not causal:
        return params
    biases = {f"b_{name}": layers[f"{name}_bias"] for name in "kvo"}
    outside = ("positions", "read_in_bias", "read_out_bias")
    return params.replace(
        b_q=layers["q_bias"] / root,
        final_norm_scale=plain["norm"]["scale"],
        final_norm_offset=plain["norm"]["offset"],
        **biases,
        **{name: plain[name] for name in outside},
    )


def test_the_plain_flow_and_the_plain_matching_say_what_ours_do():
    params, prompt = analyses.stack(5, 2, 3)
    flow_of = partial(amplification.demonstration_flow, linear_attention.forward)
    ours = jax.jit(flow_of)(params, prompt)
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        tokens = prompts.tokens(prompt)
        plain = jax.jit(jax.jacrev(analyses.plain_predictions))
        flow = plain(tokens[:-1], tokens[-1], params)
        np.testing.assert_allclose(flow, ours, rtol=1e-4, atol=1e-6)
        gradients = analyses.unstructured(50, 8).astype(float)
        chosen = analyses.plain_match(gradients, 6)
    assert sorted(chosen) == sorted(match(gradients, 6).indices)


def test_every_workload_names_builders_that_take_its_sizes():
    rooms = {"linear": linear, "softmax": softmax, "analyses": analyses}
    for case in cases.CASES:
        assert len(case.work) == len(case.points)
        for name, place in case.forms.items():
            module, _, builder = place.partition(":")
            if module in rooms:
                names = getattr(rooms[module], builder).__code__
                taken = names.co_varnames[: names.co_argcount + names.co_kwonlyargcount]
                given = {**case.sizes, **case.own.get(name, {})}
                assert set(taken) <= {*given, "runs"}, (case.name, name)
    json.dumps([case.sizes for case in cases.CASES])


@pytest.mark.parametrize("kind", cases.W10["kinds"])
def test_a_newcomers_recurrence_is_our_layer(kind):
    config = recurrent.Config(kind, 5, 2, key_width=2, width=4, layout="bound")
    params = recurrent.init(jax.random.key(0), config, jnp.float32)
    tokens = jax.random.normal(jax.random.key(1), (9, 5), jnp.float32)
    both = [
        jax.jit(partial(predict, config=config))(params, tokens)
        for predict in (recurrent.predict_prefixes, layers_of_today.plain_predictions)
    ]
    np.testing.assert_allclose(*both, rtol=2e-4, atol=1e-6)
