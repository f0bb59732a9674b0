"""The tab key knows the commands, the experiments, the options, the tiers and the keys."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lsa_lab.harness.cli.commands import completion
from lsa_lab.harness.cli.options import USAGE

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


@pytest.fixture
def in_bash(tmp_path):
    """Words typed, the last of which is to be completed -> COMPREPLY, and whether jax was needed.

    The program is a script of that name, as pip writes one.
    """
    program = tmp_path / "lsa-lab"
    program.write_text(
        f"#!{sys.executable}\nimport atexit, sys\n"
        f"atexit.register(lambda: open({str(tmp_path / 'jax')!r}, 'a').write("
        "'jax\\n' if 'jax' in sys.modules else ''))\n"
        "from lsa_lab.harness.cli.command_line import main\nsys.exit(main(package='toy_lab'))\n"
    )
    program.chmod(0o755)

    def complete(*lines):
        script = f'eval "$({program} completion bash)"\n'
        for line in lines:
            words = " ".join(f"'{word}'" for word in (str(program), *line))
            script += f"COMP_WORDS=({words}); COMP_CWORD={len(line)}; _lsa_lab\n"
            script += 'printf "%s\\n" "${COMPREPLY[*]}"\n'
        done = subprocess.run(
            ["bash", "--norc", "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)])},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "jax").read_text() == "", "completing words must not import jax"
        return [line.split() for line in done.stdout.splitlines()]

    return complete


def test_bash_completes_what_is_typed(in_bash):
    commands, one, names, tiers, keys, nothing = in_bash(
        [""], ["re"], ["run", ""], ["run", "toy", "--tier", ""], ["run", "toy", "--config.s"], ["x"]
    )
    assert set(commands) == set(USAGE)
    assert one == ["report"]
    assert names == ["toy", "all"]
    assert tiers == ["smoke", "laptop", "paper"]
    assert keys == ["--config.sparsity", "--config.scale", "--config.seed"]
    assert nothing == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run toy --", "--tier --seeds --out --package --help --config.n"),
        ("draw toy --", "--tier --out --panel --with-caption --width --package --help"),
        ("--", "--out --package --help"),
        ("run --config.", ""),
        ("run toy --config.kind ", "normal"),
        ("run toy --config.bold ", "False True"),
        ("run toy --out ", ""),
        ("run toy t", ""),
        ("submit toy --engine ", "slurm local"),
        ("submit toy --sta", "--status"),
        ("completion ", "bash zsh"),
        ("fetch ", "smollm2 movie-reviews reuters"),
        ("fetch -", "--list --help"),
        ("new ", ""),
        ("report ", ""),
        ("run --package toy_lab t", "toy"),
        ("run --package no_lab ", "all"),
        ("list --package toy_lab t", "toy"),
    ],
)
def test_what_a_word_may_become(toy, line, expected):
    words = completion.candidates(["lsa-lab", *line.split(" ")], "toy_lab")
    if line == "run toy --":
        assert set(expected.split()) <= set(words)
    else:
        assert words == expected.split()


def test_another_shell_is_refused(program, capsys):
    assert program("completion", "zsh") == 0
    assert "compdef _lsa_lab lsa-lab" in capsys.readouterr().out
    for words in (["completion"], ["completion", "fish"], ["completion", "bash", "--quick"]):
        assert program(*words) == 2
        assert "completion needs a shell: bash or zsh" in capsys.readouterr().err
