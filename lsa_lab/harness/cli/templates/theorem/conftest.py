"""Settings of the test process, before the first array: float64, strict, the same draws in CI."""

import os

# Two batched factorisations at the same time can wait for each other for ever on two cores.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_enable_concurrency_optimized_scheduler=false")

import hypothesis
import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_default_matmul_precision", "highest")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile("local", max_examples=10, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=10, deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")
