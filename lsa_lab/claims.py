"""The public name of ``lsa_lab.judging.claims``, kept for one version."""

from lsa_lab.judging.claims import *  # noqa: F403
