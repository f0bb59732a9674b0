"""A training whose weights several devices share: the numbers of one device, and its own bits."""

import pytest

PROGRAM = r"""
    import re, sys
    from dataclasses import replace
    from functools import partial
    import jax, numpy as np, optax
    from jax.sharding import Mesh
    from lsa_lab.models import sharding
    from lsa_lab.training import Files, fit, loop, plan, snapshots
    from lsa_lab.training.groups import RunGroups

    page = re.search(r"```python\n(.*?)```", open("docs/accelerators.md").read(), re.DOTALL)[1]
    make, loop._SAVE_EVERY = sharding.mesh, 0.0
    checkpoint = Files(f"{sys.argv[1]}/checkpoint")

    def trained(mesh):  # by the example of the documentation
        sharding.mesh = lambda batch: mesh
        names = {}
        exec(page.replace("steps=100", "steps=6"), names)
        return names["run"], [names[name] for name in ("training", "params", "key_data")]

    def far(*trees):
        gaps = jax.tree.map(lambda a, b: float(abs(np.asarray(a) - np.asarray(b)).max()), *trees)
        return max(jax.tree.leaves(gaps))

    class Killer:
        def __init__(self):
            self.chunks = 0
        def add_task(self, *_, **__):
            return 0
        def update(self, *_, **__):
            self.chunks += 1
            if self.chunks == 2:
                raise InterruptedError

    alone = Mesh(np.array(jax.devices()[:1])[None], ("batch", "model"))
    one, _ = trained(alone)
    mesh = make(2)  # two rows of two
    run, calls = trained(mesh)
    assert 0 < far((run.params, run.history), (one.params, one.history)) < 1e-10
    assert run.params.w_q.addressable_shards[0].data.shape[1] == 2  # of 4 heads

    again = partial(fit, *calls, chunk=2, watch=lambda p: p.w_q.sum(), files=checkpoint)
    for device, way in ((mesh, Killer()), (alone, None)):
        try:
            again(mesh=device, progress=way)
        except (InterruptedError, ValueError) as error:
            ended = str(error)
    assert "mesh" in ended, ended
    resumed = again(mesh=mesh)
    assert far((resumed.params, resumed.history["loss"]), (run.params, run.history["loss"])) == 0
    assert resumed.history["watch"].shape == (4,)

    training, params, key = calls
    wild = replace(training, optimizer=optax.sgd(1e300))
    status = fit(wild, params, key, mesh=mesh).status
    assert "diverged" in str(status), status

    whole = plan.plan_of(training, (params, key, None), None, None, 100, 1, mesh)
    with RunGroups(whole) as groups:
        begun = groups.start(snapshots.Store(whole, None, "").resume().state)
        (state, _), = (group.result() for group in groups.advance(begun, 0, np.ones(1, bool)))
    assert state.opt_state[0].mu.w_q.sharding == run.params.w_q.sharding
"""


@pytest.mark.slow
def test_devices_share_the_weights_of_a_training_that_resumes_to_its_bits(tmp_path, on_devices):
    on_devices(4, PROGRAM, tmp_path)
