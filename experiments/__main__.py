import sys

from lsa_lab.harness.command_line import main

sys.exit(main(package="experiments", program="python -m experiments"))
