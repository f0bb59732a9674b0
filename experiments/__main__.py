import sys

from lsa_lab.harness.run.environment import advice

if lacking := advice():
    print(f"error: {lacking}", file=sys.stderr)
    sys.exit(2)
else:
    from lsa_lab.harness.cli.command_line import main

    sys.exit(main(package="experiments", program="python -m experiments"))
