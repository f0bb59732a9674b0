"""transformers on torch in a process of its own, which takes its turns: ``benchmarks.lm_forward``.

A decoder of SmolLM2-135M's shape with random weights. It answers a line in JSON with one: the
seconds on the clock and of the processor that a turn took.
"""

import json
import os
import sys
import time


def main() -> None:
    try:
        import torch
        import transformers
    except ImportError as error:
        print(json.dumps({"absent": str(error)}), flush=True)
        return
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**json.loads(sys.argv[1])))
    model = model.eval().requires_grad_(False)
    versions = f"transformers {transformers.__version__} on torch {torch.__version__}"
    print(json.dumps({"versions": versions, "threads": torch.get_num_threads()}), flush=True)
    turns = {"forward": forward, "gradient": gradient, "questions": questions}
    for line in sys.stdin:
        name, *sizes = json.loads(line)
        began, used = time.perf_counter(), time.process_time()
        turns[name](torch, model, *sizes)
        seconds = time.perf_counter() - began, time.process_time() - used
        print(json.dumps(seconds), flush=True)


def ids_of(torch, model, *shape):
    return torch.randint(model.config.vocab_size, shape)


def forward(torch, model, prompts, num_tokens):
    """The logits after every token."""
    with torch.inference_mode():
        model(ids_of(torch, model, prompts, num_tokens), use_cache=False)


def gradient(torch, model, num_tokens):
    """∂(logit - logit of another word)/∂(embeddings), after the last token."""
    ids = ids_of(torch, model, 1, num_tokens)
    rows = model.get_input_embeddings()(ids).detach().requires_grad_(True)
    logits = model(inputs_embeds=rows, use_cache=False, logits_to_keep=1).logits[0, -1]
    torch.autograd.grad(logits[0] - logits[1], rows)


def questions(torch, model, before, parts, at_once, num_tokens):
    """Questions after the same tokens, whose keys and values are kept and copied for each."""
    from transformers import DynamicCache

    with torch.inference_mode():
        past = DynamicCache()
        model(ids_of(torch, model, 1, before), past_key_values=past, logits_to_keep=1)
        past.batch_repeat_interleave(at_once)
        for _ in range(parts):
            ids = ids_of(torch, model, at_once, num_tokens)
            model(ids, past_key_values=past, logits_to_keep=1)
            past.crop(-num_tokens)


if __name__ == "__main__":
    main()
