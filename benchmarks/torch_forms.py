"""Torch forms of our own of W1 to W5, on the processor, with as many threads as cores; no jax."""

import math

import torch
from torch import nn
from torch.nn import functional

from benchmarks import machine
from benchmarks.timing import Form, Spent, time_calls

RATE = 1e-4  # of Adam

torch.manual_seed(0)
torch.set_num_threads(len(machine.cores()))


def versions() -> str:
    return f"torch {torch.__version__}, {torch.get_num_threads()} threads"


def linear(n: int, d: int, layers: int, batch: int, steps: int, runs: int = 1) -> Form:
    """A batch drawn and attended to at once: E + W_pv E M (Eᵀ W_kq E) / n."""

    def draw():
        x, w = torch.randn(batch, n + 1, d), torch.randn(batch, d, 1)
        y = x @ w
        tokens = torch.cat([x, y], dim=2)
        tokens[:, -1, -1] = 0
        return tokens, y[:, -1, 0]

    def loss(weights):
        tokens, targets = draw()
        for kq, pv in weights:
            keys = tokens[:, :-1]
            scores = tokens @ kq.T @ keys.transpose(1, 2)
            tokens = tokens + scores @ keys @ pv.T / n
        return torch.mean((-tokens[:, -1, -1] - targets) ** 2)

    def model():
        weights = (0.02 * torch.randn(layers, 2, d + 1, d + 1)).requires_grad_()
        return [weights], lambda: loss(weights)

    return train_form(model, steps, runs)


def softmax(
    causal: bool, n: int, d: int, batch: int, layers: int, width: int, heads: int, steps: int
) -> Form:
    """GPT-2's layers, or an encoder's, by torch's own attention."""

    def draw():
        x, w = torch.randn(batch, n + 1, d), torch.randn(batch, d, 1)
        y = x @ w
        if causal:
            tokens = torch.zeros(batch, 2 * n + 2, d + 1)
            tokens[:, ::2, :d], tokens[:, 1::2, d] = x, y[:, :, 0]
            return tokens[:, :-1], y[:, :, 0]
        tokens = torch.cat([x, y], dim=2)
        tokens[:, -1, -1] = 0
        return tokens, y[:, -1, 0]

    def model():
        length = 2 * n + 1 if causal else n + 1
        network = Transformer(causal, d + 1, layers, width, heads, length)

        def loss():
            tokens, targets = draw()
            return torch.mean((network(tokens) - targets) ** 2)

        return network.parameters(), loss

    return train_form(model, steps)


def train_form(build, steps: int, runs: int = 1) -> Form:
    """Steps of Adam, one run after the other."""
    models = [build() for _ in range(runs)]
    optimizers = [torch.optim.Adam(parameters, lr=RATE) for parameters, _ in models]

    def train():
        for (_, loss), optimizer in zip(models, optimizers, strict=True):
            for _ in range(steps):
                optimizer.zero_grad()
                loss().backward()
                optimizer.step()

    def turn() -> list[Spent]:
        wall, processor = time_calls(train, 1, lambda x: x)
        return [(wall / steps, processor / steps)]

    return Form(turn, [steps])


class Transformer(nn.Module):
    """A prediction at the query; at every x where the model is causal."""

    def __init__(self, causal, token_width, layers, width, heads, length):
        super().__init__()
        self.causal = causal
        self.read_in = nn.Linear(token_width, width, bias=causal)
        self.positions = nn.Parameter(torch.zeros(length, width)) if causal else None
        self.layers = nn.ModuleList(Layer(causal, width, heads, length) for _ in range(layers))
        self.norm = nn.LayerNorm(width) if causal else nn.Identity()
        self.read_out = nn.Linear(width, 1, bias=causal)

    def forward(self, tokens):
        stream = self.read_in(tokens)
        if self.causal:
            stream = stream + self.positions
        for layer in self.layers:
            stream = layer(stream)
        read = stream[:, ::2] if self.causal else stream[:, -1]
        return self.read_out(self.norm(read)).squeeze(-1)


class Layer(nn.Module):
    def __init__(self, causal, width, heads, length):
        super().__init__()
        self.causal, self.heads = causal, heads
        self.norm, self.mlp_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=causal)
        self.out = nn.Linear(width, width, bias=causal)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width)
        )
        readable = torch.ones(length, length, dtype=torch.bool)
        readable[:, -1] = False
        self.register_buffer("readable", readable)

    def forward(self, stream):
        batch, length, width = stream.shape
        qkv = self.qkv(self.norm(stream)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scale = 1 / math.sqrt(width // self.heads)
        how = dict(is_causal=True) if self.causal else dict(attn_mask=self.readable)
        read = functional.scaled_dot_product_attention(q, k, v, scale=scale, **how)
        stream = stream + self.out(read.transpose(1, 2).reshape(batch, length, width))
        return stream + self.mlp(self.mlp_norm(stream))
