"""Which trained models' heads can be mixed without changing any prediction. No jax."""

from experiments.models.specs import Spec, restored


def mixable_and_own(models) -> tuple[list[tuple[str, Spec]], list[tuple[str, Spec]]]:
    """A config's models whose heads can be mixed, and those whose heads are their layers' own."""
    kinds = [], []
    for name, saved in models:
        spec = restored(saved)
        kinds[not can_be_mixed(spec)].append((name, spec))
    return kinds


def can_be_mixed(spec: Spec) -> bool:
    """Linear heads whose keys are so wide that the heads of a layer can be any (docs/theory, "Heads
    are not unique")."""
    architecture = spec.architecture
    narrow = architecture.key_width is not None and architecture.key_width < spec.token_width
    return architecture.kernel == "linear" and not narrow
