"""What the library's workloads cost, beside plain JAX: `make bench` writes RESULTS.md.

`cases` names the workloads W1 to W9; `linear`, `softmax` and `analyses` hold the library's way and
the plain one. Every form of a workload runs in a process of its own (`worker`) and they take turns
(`turns`). `waits` are of commands, `lm` of a decoder, `gpu` of one device.
"""
