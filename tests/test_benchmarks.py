"""The measuring tool: its refusal, and that the forms do the same work."""

import contextlib
import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import __main__ as program
from benchmarks import analyses, cases, gpu, linear, lm, machine, report, softmax, turns
from benchmarks import recurrent as layers_of_today
from lsa_lab import prompts
from lsa_lab.analyses import amplification
from lsa_lab.lm import weights
from lsa_lab.models import linear_attention, recurrent, transformer
from lsa_lab.models.trace import predict
from lsa_lab.selection.gradient_matching import match
from lsa_lab.tasks.linear import LinearTask, sample


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


def test_a_loaded_machine_is_refused_by_name():
    shares = iter([0.3, 0.01, 0.3, 0.2])
    attempt = lambda case: {"others": (next(shares), "a game")}  # noqa: E731
    assert turns.measure(cases.CASES[0], attempt)["others"][0] == 0.01
    with pytest.raises(machine.LoadedError, match=r"W1 refused: .* 20% of the cores, a game"):
        turns.measure(cases.CASES[0], attempt)


def test_a_workload_without_its_weights_is_left_out_and_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path))
    monkeypatch.setattr(turns, "measure", lambda case: pytest.fail(f"{case.name} was measured"))
    assert program.measure([cases.BY_NAME["LM, loaded"]], again=True) == ({}, [])
    assert capsys.readouterr().out == "LM, loaded: left out, smollm2 has not been fetched\n"


def table(**seconds):
    """A made-up table of W1's forms and of both waits: three turns of each."""
    walls = {"limits": [[1e-2] * 4] * 3, "ours": [[seconds["w1"]]] * 3, "plain JAX": [[9.0]] * 3}
    waits = {"limits": walls["limits"], "ours": [[seconds["first"]] * 6 + [seconds["last"]]] * 3}
    rows = {}
    for name, of_forms in {"W1": walls, "waits": waits}.items():
        how = {"compile": 1.0, "peak": 9.0, "versions": "jax 0"}
        forms = {form: {"wall": w, "processor": w} | how for form, w in of_forms.items()}
        points = list(cases.BY_NAME[name].points)
        rows[name] = dict(points=points, forms=forms, flops=[None] * len(points), others=[0.01, ""])
    facts = dict(when="today", facts=seconds.get("machine", "a"), versions="jax 0", commit="0")
    return {"head": facts, "results": rows}


def test_what_became_a_fifth_slower_is_named_and_what_is_ours_alone_is_compared():
    before = table(w1=2e-3, first=1.0, last=10.0)
    lines = report.compare(before, table(w1=2.3e-3, first=0.5, last=12.5))
    (slow,) = (line for line in lines if line.endswith(report.SLOWER))
    assert slow.startswith("waits figures of flow_factors, ours: 10 s, now 12.5 s")
    lines = report.compare(before, table(w1=1.0, first=1.0, last=10.0, machine="b"))
    assert lines[0] == "before on another machine: a"
    del before["results"]["W1"]
    assert len(report.compare(before, table(w1=9.0, first=1.0, last=10.0))) == 7


def test_against_a_table_the_program_names_what_became_slower_and_writes_nothing(
    tmp_path, monkeypatch, capsys
):
    (file := tmp_path / "RESULTS.json").write_text(
        json.dumps(table(w1=2e-3, first=1.0, last=1.0)), "utf-8"
    )
    monkeypatch.setattr(program, "RESULTS", tmp_path / "new.json")
    monkeypatch.setattr(program, "file_of_turns", lambda: tmp_path / "turns.json")
    monkeypatch.setattr("sys.argv", ["benchmarks", "--against", str(file)])
    for seconds, status in ((2e-3, None), (3e-3, 1)):
        now = table(w1=seconds, first=1.0, last=1.0)["results"]
        monkeypatch.setattr(program, "measure", lambda *_, now=now, **__: (now, []))
        with pytest.raises(SystemExit) if status else contextlib.nullcontext():
            program.main()
        assert not program.RESULTS.exists()
        assert ("W1, ours: 0.002 s, now 0.003 s" in capsys.readouterr().err) == bool(status)
    monkeypatch.setattr("sys.argv", ["benchmarks"])
    program.main()
    assert "| W1 | ours | 3 (3 to 3) ms a step | 3e+03" in program.RESULTS.with_suffix(
        ".md"
    ).read_text("utf-8")
    assert json.loads(program.RESULTS.read_text("utf-8"))["results"] == now


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
        gradients = analyses.draw_gradients(50, 8).astype(float)
        chosen = analyses.plain_match(gradients, 6)
    assert sorted(chosen) == sorted(match(gradients, 6).indices)


@pytest.mark.slow
def test_the_eight_numbers_of_a_gpu_run_here_too(monkeypatch, capsys):
    monkeypatch.setattr(gpu.lm, "model", lambda: pytest.fail("small sizes load no model"))
    cards = []  # which tests/card makes
    monkeypatch.setattr(gpu, "report_card", lambda *_, tier: cards.append(tier))
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        gpu.main(quick=True)
    lines = capsys.readouterr().out.splitlines()[4:]
    assert len(lines) == 8
    assert all("| not known | - |" in line for line in lines)  # of a processor
    assert cards == [gpu.TINY_CARD] * 2  # to compile, and to be timed
    assert [" |  | " in line for line in lines] == [False] * 3 + [True] * 5  # without a peer
    work = cases.Work(67e9, moved=3.35e12)
    assert gpu.predict(work, "NVIDIA H100 80GB HBM3") == pytest.approx(1.0)
    assert gpu.predict(work, "NVIDIA H100 PCIe") == pytest.approx(1.675)


@pytest.mark.slow
def test_a_small_decoder_does_what_the_language_model_is_timed_at(monkeypatch):
    params = weights.init(jax.random.key(0), gpu.TINY, jnp.float32)
    monkeypatch.setattr(lm, "model", lambda: (params, gpu.TINY))
    monkeypatch.setattr(lm, "SMOLLM2", gpu.TINY)
    monkeypatch.setattr(lm, "BEFORE", 3)
    monkeypatch.setattr(lm, "QUESTION", 4)
    monkeypatch.setattr(lm, "LISTENED", 5)
    for form, name in ((lm.ours([[1, 5], [2, 3]]), "LM"), (lm.ours_alone(), "LM, alone")):
        assert len(form.turn()) == len(cases.BY_NAME[name].points)


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
