"""Writes tests/lm/fixtures: tiny random models of transformers, and what they compute.

    pip install 'lsa-lab[lm-reference]' && python -m tools.lm_fixtures [NAME...]

Every parameter is random, norms and biases too, so that none can be left out unnoticed, and no two
sizes are equal that a transposed matrix could hide in. What is expected is computed in float64.
"""

import contextlib
import shutil
import sys
from pathlib import Path
from unittest import mock

import torch
import transformers
from safetensors.torch import save_file

FIXTURES = Path(__file__).resolve().parents[1] / "tests" / "lm" / "fixtures"
NUM_TOKENS = 7
LONG = {"vocab_size": 61, "num_hidden_layers": 2, "max_position_embeddings": 12}
SHORT = {"vocab_size": 61, "n_layer": 2, "n_positions": 12, "n_embd": 32, "n_head": 4}
SHORT |= {"bos_token_id": 0, "eos_token_id": 0}
ROPE = {"rope_type": "default", "rope_theta": 500.0}
NARROW = LONG | {"hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 3}
WIDE = LONG | {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4}
ONE_KEY = NARROW | {"num_key_value_heads": 1, "rope_parameters": ROPE}
TWO_KEYS = {"num_key_value_heads": 2, "rope_parameters": ROPE}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0}
LLAMA3 |= {"original_max_position_embeddings": 24}
SERIAL = {"use_parallel_residual": False, "hidden_act": "gelu_new"}


def turned(share: float) -> dict:
    return {"rope_parameters": ROPE | {"partial_rotary_factor": share}}


MODELS = {
    "llama": transformers.LlamaConfig(**WIDE | TWO_KEYS | {"head_dim": 16}),
    "llama_tied": transformers.LlamaConfig(
        **ONE_KEY, attention_bias=True, tie_word_embeddings=True
    ),
    "qwen2": transformers.Qwen2Config(**WIDE | TWO_KEYS | {"rms_norm_eps": 1e-3}),
    "gpt2": transformers.GPT2Config(**SHORT, n_inner=40),
    "gptj": transformers.GPTJConfig(**SHORT, n_inner=40, rotary_dim=4),
    "gpt_neox": transformers.GPTNeoXConfig(**WIDE | turned(0.5) | {"intermediate_size": 40}),
    "gpt_neox_serial": transformers.GPTNeoXConfig(**NARROW | turned(0.25) | SERIAL),
    "llama3": transformers.LlamaConfig(
        **ONE_KEY | {"rope_parameters": ROPE | LLAMA3, "tie_word_embeddings": True}
    ),
    "mistral": transformers.MistralConfig(**ONE_KEY, sliding_window=None),
    "qwen3": transformers.Qwen3Config(
        **NARROW | TWO_KEYS | {"num_attention_heads": 4, "head_dim": 8, "rms_norm_eps": 1e-3}
    ),
    "gemma": transformers.GemmaConfig(**ONE_KEY, head_dim=16, rms_norm_eps=1e-3),
}
HALF = {"gptj": torch.float16, "gpt_neox_serial": torch.bfloat16}  # what the file holds
SINGLE = torch.float32
SHARDED = "llama"
FINAL_NORMS = ("norm", "ln_f", "final_layer_norm")


@contextlib.contextmanager
def float64():
    """transformers computes norms, angles and softmax in float32 whatever the weights; not here."""
    with (
        mock.patch.object(torch, "float32", torch.float64),
        mock.patch.object(torch, "float", torch.float64),
        mock.patch.object(torch.Tensor, "float", torch.Tensor.double),
    ):
        torch.set_default_dtype(torch.float64)
        yield
    torch.set_default_dtype(torch.float32)


def perturb(model: torch.nn.Module, generator: torch.Generator) -> None:
    """Weights of a size at which attention and MLP matter; scales around 1, biases around 0."""
    for name, parameter in model.named_parameters():
        normal = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        if parameter.ndim == 2:
            parameter.data = normal * 1.5 * max(parameter.shape) ** -0.5
        else:
            parameter.data = 0.3 * normal + name.endswith("weight")


def answers(model: torch.nn.Module, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """The stream before the first layer and after each, and the logits, of one prompt."""
    norms = [m for n, m in model.named_modules() if n.split(".")[-1] in FINAL_NORMS]
    last = []
    hook = norms[0].register_forward_pre_hook(lambda module, inputs: last.append(inputs[0]))
    with torch.no_grad():
        outputs = model(ids[None], output_hidden_states=True)
    hook.remove()
    # The last of their hidden states has been through the final norm.
    stream = torch.cat([*outputs.hidden_states[:-1], *last])
    return {"ids": ids, "stream": stream, "logits": outputs.logits[0]}


def write(name: str, config: transformers.PreTrainedConfig, seed: int) -> None:
    """One folder: config.json, weights, and expected.safetensors."""
    folder = FIXTURES / name
    shutil.rmtree(folder, ignore_errors=True)
    generator = torch.Generator().manual_seed(seed)
    with float64():
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
        model = model.double().eval()
        perturb(model, generator)
        for parameter in model.parameters():
            parameter.data = parameter.data.to(HALF.get(name, SINGLE)).double()
        ids = torch.randint(config.vocab_size, (NUM_TOKENS,), generator=generator)
        outputs = answers(model, ids)
    model = model.to(HALF.get(name, SINGLE))
    model.save_pretrained(folder, max_shard_size="40KB" if name == SHARDED else "1GB")
    (folder / "generation_config.json").unlink(missing_ok=True)
    rows = {key: tensor.contiguous() for key, tensor in outputs.items()}
    save_file(rows, folder / "expected.safetensors")
    print(name, sum(file.stat().st_size for file in folder.iterdir()) // 1000, "kB")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for seed, (name, config) in enumerate(MODELS.items()):
        if not sys.argv[1:] or name in sys.argv[1:]:
            write(name, config, seed)
