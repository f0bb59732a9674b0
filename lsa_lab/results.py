"""The public name of ``lsa_lab.store.results``, kept for one version."""

from lsa_lab.store.results import *  # noqa: F403
