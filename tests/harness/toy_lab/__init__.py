"""A package of one experiment, for the tests of the harness alone."""

EXPERIMENTS = ("theme.toy",)
