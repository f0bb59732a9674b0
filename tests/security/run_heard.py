"""``python run_heard.py WORDS...``: the program, and which networks it has asked."""

import contextlib
import json
import socket
import sys

from lsa_lab.harness.cli.command_line import main

asked: list[str] = []
ASKING = ("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto")


def hear(event: str, arguments: tuple) -> None:
    if event.startswith(ASKING):
        asked.append(event)


if __name__ == "__main__":
    sys.addaudithook(hear)
    status = main(sys.argv[1:], program="lsa-lab")
    of_program = list(asked)
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", 9), timeout=1).close()
    print(json.dumps({"status": status, "asked": of_program, "control": asked[len(of_program) :]}))
