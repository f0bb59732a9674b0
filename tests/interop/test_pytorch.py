"""A module of PyTorch, called from JAX, answers and is derived as torch does it."""

import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import prompts
from lsa_lab.analyses import amplification
from lsa_lab.card import report_card
from lsa_lab.card.recipe import TIERS
from lsa_lab.interop import TorchModuleError, as_forward, from_torch
from lsa_lab.tasks.linear import LinearTask, sample

torch = pytest.importorskip("torch")

N, D = 5, 2
PROMPT = jax.jit(sample)(jax.random.key(0), LinearTask(N, D))
TOKENS = prompts.tokens(PROMPT)


class Attention(torch.nn.Module):
    """Causal softmax attention and an MLP with dropout, read out at every token."""

    def __init__(self, width=D + 1, dropout=0.0):
        super().__init__()
        self.key, self.value = (torch.nn.Linear(width, 4, bias=False) for _ in range(2))
        inner, out = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)
        self.mlp = torch.nn.Sequential(inner, torch.nn.Tanh(), torch.nn.Dropout(dropout), out)

    def forward(self, tokens):
        keys = self.key(tokens)
        scores = keys @ keys.mT + torch.full((len(tokens), len(tokens)), -1e9).triu(1).to(keys)
        return self.mlp(scores.softmax(-1) @ self.value(tokens))


class Query(torch.nn.Module):
    """The answer of a module at the last token, of a batch of prompts."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, tokens):
        return torch.stack([self.inner(rows)[-1, 0] for rows in tokens])


@pytest.fixture
def module():
    torch.manual_seed(0)
    return Query(Attention()).double()


@pytest.fixture
def lifted(module):
    return from_torch(module, TOKENS[None])


def test_flows_and_second_derivatives_are_those_of_autograd(module, lifted):
    forward, params = lifted
    own = torch.tensor(np.array(TOKENS))
    answer = lambda rows: module(rows[None])[0]  # noqa: E731
    slope = torch.autograd.functional.jacobian(answer, own).numpy()
    flow = amplification.demonstration_flow(as_forward(forward), params, PROMPT)
    np.testing.assert_allclose(flow[-1], slope[:-1], rtol=1e-12, atol=1e-15)
    curvature = torch.autograd.functional.hessian(answer, own).numpy()
    ask = lambda tokens: forward(params, tokens)  # noqa: E731
    twice = jax.jit(jax.jacrev(jax.jacrev(ask)))(TOKENS)
    np.testing.assert_allclose(twice, curvature, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("cut", [slice(None), slice(1)])
def test_runs_and_prompts_are_mapped_and_weights_derived(module, lifted, cut):
    forward, params = lifted
    batch = jnp.stack([TOKENS, TOKENS * 2, TOKENS - 1])[cut]
    many = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), params)
    mapped = jax.jit(jax.vmap(jax.vmap(forward, (None, 0)), (0, None)))
    each = [
        [forward(jax.tree.map(lambda leaf, run=run: leaf[run], many), rows) for rows in batch]
        for run in range(2)
    ]
    np.testing.assert_allclose(mapped(many, batch), np.array(each), rtol=1e-12)
    loss = lambda own: (jax.vmap(forward, (None, 0))(own, batch) ** 2).sum()  # noqa: E731
    slopes = jax.jit(jax.grad(loss))(params)
    (module(torch.tensor(np.array(batch))) ** 2).sum().backward()
    assert slopes.keys() == {name for name, _ in module.named_parameters()}
    for name, leaf in module.named_parameters():
        np.testing.assert_allclose(slopes[name], leaf.grad, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_the_dtype_is_that_of_tokens(lifted, dtype):
    forward, params = lifted
    low = jax.tree.map(lambda leaf: leaf.astype(dtype), params)
    assert forward(low, TOKENS.astype(dtype)).dtype == dtype
    close = {"bfloat16": 0.1, "float32": 1e-5, "float64": 0}[dtype]
    np.testing.assert_allclose(
        forward(low, TOKENS.astype(dtype)).astype(float), forward(params, TOKENS), atol=close
    )
    with pytest.raises(TypeError, match="cast one"):
        forward(params, TOKENS.astype("float16"))


@pytest.mark.parametrize(
    ("layer", "advice"),
    [
        (Attention(dropout=0.5).double(), "turns dropout off"),
        (torch.nn.BatchNorm1d(D + 1).double(), "changes its buffers running_mean"),
        (torch.nn.LSTM(D + 1, 4).double(), "return one tensor"),
    ],
)
def test_a_module_that_is_no_function_is_refused(layer, advice):
    with pytest.raises(TorchModuleError, match=advice):
        from_torch(layer, TOKENS)
    if advice != "return one tensor":
        forward, params = from_torch(layer.eval(), TOKENS)
        assert np.isfinite(forward(params, TOKENS)).all()


def test_without_torch_the_error_says_what_to_install(monkeypatch, module):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(TorchModuleError, match="pip install torch"):
        from_torch(module, TOKENS)


def test_a_card_of_a_module_is_made():
    torch.manual_seed(0)
    forward, params = from_torch(Attention(17), np.zeros((4, 17), np.float32))
    card = report_card(forward, params=params, tier=replace(TIERS["smoke"], prompts=32))
    assert card.probes["risk over Bayes, n = 16"].verdict == "fails"
    assert card.probes["nearest rule"].value
    assert card.facts["program_sha256"].startswith("unknown")


def test_a_module_that_torch_cannot_map_answers_prompt_by_prompt():
    class Recurrent(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.GRU(D + 1, 4, batch_first=True)

        def forward(self, tokens):
            return self.layer(tokens)[0][..., 0]

    own = Recurrent().double()
    forward, params = from_torch(own, TOKENS[None])
    batch = np.random.default_rng(0).normal(size=(3, N + 1, D + 1))
    ours = jax.jit(jax.vmap(forward, (None, 0)))(params, jnp.asarray(batch))
    np.testing.assert_allclose(ours, own(torch.tensor(batch)).detach().numpy(), atol=1e-12)
