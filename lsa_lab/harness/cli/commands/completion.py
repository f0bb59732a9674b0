"""``completion``: a script for bash or zsh that asks this program what a word may become."""

import argparse

from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.cli.engines import ENGINES
from lsa_lab.harness.cli.keys import value_word
from lsa_lab.harness.cli.overrides import PREFIX
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run.laboratory import TIERS, Experiment, experiments_of
from lsa_lab.lm import sources

# Both hand over the words typed so far, one a line, the last of which is to be completed.
BASH = """\
# For now: eval "$(lsa-lab completion bash)". For ever: the same line in ~/.bashrc.
_lsa_lab() {
    local IFS=$'\\n'
    local words=("${COMP_WORDS[@]:0:COMP_CWORD+1}")
    COMPREPLY=($("${COMP_WORDS[0]}" completion words "${words[*]}" 2>/dev/null))
}
complete -o default -F _lsa_lab lsa-lab
"""
ZSH = """\
# For now: eval "$(lsa-lab completion zsh)". For ever: the same line in ~/.zshrc, after compinit.
_lsa_lab() {
    local -a candidates
    candidates=(${(f)"$("${words[1]}" completion words "${(F)words[1,CURRENT]}" 2>/dev/null)"})
    (( $#candidates )) && compadd -a candidates || _files
}
compdef _lsa_lab lsa-lab
"""
SHELLS = {"bash": BASH, "zsh": ZSH}


def obey(options: argparse.Namespace) -> int:
    """A script for the shell, to be evaluated by it: it completes commands, experiments, options,
    tiers, sources, and the keys of an experiment's config after its name."""
    if options.names[:1] == ["words"] and len(options.names) == 2:
        print("\n".join(candidates(options.names[1].split("\n"), options.package)))
        return 0
    if options.unknown or len(options.names) != 1 or options.names[0] not in SHELLS:
        raise RefusalError(f"completion needs a shell: {' or '.join(SHELLS)}")
    print(SHELLS[options.names[0]], end="")
    return 0


def candidates(words: list[str], package: str) -> list[str]:
    """What the last of the words may become; nothing where it is a file or a number."""
    _, *typed, current = ["", *words] if len(words) < 2 else words
    before = typed[-1] if typed else ""
    named = [word for word in typed if not word.startswith("-")]
    command = next((word for word in named if word in command_options.USAGE), None)
    if "--package" in typed[:-1]:
        package = typed[typed.index("--package") + 1]
    experiments = _experiments(package)
    here = [experiments[name] for name in named if name in experiments]
    if before.startswith(PREFIX) and not current.startswith("-"):
        words = _values(here, before.removeprefix(PREFIX))
    elif before.startswith("--") and before in {
        option.word for option in command_options.OPTIONS if option.value
    }:
        words = {"--tier": list(TIERS), "--engine": list(ENGINES)}.get(before, [])
    elif current.startswith("-"):
        words = [*_options(command or "list", here), "--help"]
    elif command is None:
        words = list(command_options.USAGE)
    elif command == "completion":
        words = list(SHELLS)
    elif command == "fetch":
        words = list(sources.SOURCES)
    else:
        takes_names = command_options.USAGE[command][0].strip("[].") == "NAME"
        words = [*experiments, "all"] if takes_names else []
    return [word for word in words if word.startswith(current) and word not in typed]


def _experiments(package: str) -> dict[str, Experiment]:
    try:
        return experiments_of(package)
    except RefusalError:
        return {}


def _options(command: str, experiments: list[Experiment]) -> list[str]:
    words = []
    for option in command_options.OPTIONS:
        if command in option.commands:
            words += _keys(experiments) if option.word == "--config.KEY" else [option.word]
    return words


def _keys(experiments: list[Experiment]) -> list[str]:
    configs = [next(iter(experiment.tiers.values())) for experiment in experiments]
    return [f"{PREFIX}{key}" for config in configs for key in vars(config)]


def _values(experiments: list[Experiment], key: str) -> list[str]:
    """The values that the tiers have, for a start."""
    values = [
        value_word(getattr(config, key))
        for experiment in experiments
        for config in experiment.tiers.values()
        if isinstance(getattr(config, key, None), bool | int | float | str)
    ]
    values += ["True", "False"] if {"True", "False"} & set(values) else []
    return list(dict.fromkeys(values))
