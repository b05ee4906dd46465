"""Completion scripts of `sparing-client` for bash, zsh and fish, made from the same commands as the parser."""

import shlex

from sparing._cli_grammar import COMMANDS, PROGRAM, Command

_GLOBAL = ("help", "version")


def script(shell: str) -> str:
    """The script for a shell. Raises KeyError for an unknown one."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


def _bash() -> str:
    names = " ".join(command.name for command in COMMANDS)
    words = "\n".join(f"        {command.name}) words={shlex.quote(_words(command))} ;;" for command in COMMANDS)
    options = [option for command in COMMANDS for option in command.options]
    valued = "|".join(dict.fromkeys(f"--{option.name}" for option in options if option.value is not None))
    files = "|".join(command.name for command in COMMANDS if any(each.is_file for each in command.arguments))
    return f"""\
# Put this into ~/.bashrc: source <({PROGRAM} completion bash)
_sparing_client() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" command="" word words
    COMPREPLY=()
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case " {names} " in *" $word "*) command="$word"; break ;; esac
    done
    case "${{COMP_WORDS[COMP_CWORD-1]}}" in {valued}) return ;; esac
    case "$command" in
        "") words="{names} {" ".join(f"--{name}" for name in _GLOBAL)}" ;;
{words}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [[ "$current" != -* ]]; then
        case "$command" in {files}) compopt -o default 2> /dev/null; COMPREPLY=() ;; esac
    fi
}}
complete -F _sparing_client {PROGRAM}
"""


def _words(command: Command) -> str:
    choices = [choice for argument in command.arguments for choice in argument.choices]
    return " ".join([*choices, *(f"--{option.name}" for option in command.options), "--help"])


def _zsh() -> str:
    described = "\n".join(f"        {shlex.quote(f'{command.name}:{command.help}')}" for command in COMMANDS)
    cases = "\n".join(_zsh_case(command) for command in COMMANDS)
    return f"""\
#compdef {PROGRAM}
# Put this into ~/.zshrc, after compinit: source <({PROGRAM} completion zsh)
_sparing_client() {{
    local -a commands
    commands=(
{described}
    )
    if (( CURRENT == 2 )); then
        if [[ "${{words[2]}}" == -* ]]; then
            _arguments '--help[show the help]' '--version[show the version]'
        else
            _describe -t commands command commands
        fi
        return
    fi
    local command="${{words[2]}}"
    words=("${{(@)words[2,-1]}}")
    (( CURRENT-- ))
    case "$command" in
{cases}
    esac
}}
compdef _sparing_client {PROGRAM}
"""


def _zsh_case(command: Command) -> str:
    parts = [
        f"{place}:{argument.name}:{_zsh_action(argument.choices, is_file=argument.is_file)}"
        for place, argument in enumerate(command.arguments, start=1)
    ]
    for option in command.options:
        value = "" if option.value is None else f":{option.value}:"
        parts.append(f"--{option.name}[{option.help.replace(']', '')}]{value}")
    listed = " ".join(shlex.quote(part) for part in [*parts, "--help[show the help]"])
    return f"        {command.name}) _arguments {listed} ;;"


def _zsh_action(choices: tuple[str, ...], *, is_file: bool) -> str:
    return f"({' '.join(choices)})" if choices else "_files" if is_file else " "


def _fish() -> str:
    lines = [
        f"# Put this into ~/.config/fish/config.fish: {PROGRAM} completion fish | source",
        f"complete -c {PROGRAM} -f",
        f"complete -c {PROGRAM} -l help -d 'show the help'",
        f"complete -c {PROGRAM} -n __fish_use_subcommand -l version -d 'show the version'",
    ]
    for command in COMMANDS:
        lines.append(f"complete -c {PROGRAM} -n __fish_use_subcommand -a {command.name} -d {_fish_text(command.help)}")
        seen = f"complete -c {PROGRAM} -n '__fish_seen_subcommand_from {command.name}'"
        for argument in command.arguments:
            if argument.choices:
                lines.append(f"{seen} -a {_fish_text(' '.join(argument.choices))}")
            elif argument.is_file:
                lines.append(f"{seen} -F")
        for option in command.options:
            value = "" if option.value is None else " -x"
            lines.append(f"{seen} -l {option.name}{value} -d {_fish_text(option.help)}")
    return "\n".join([*lines, ""])


def _fish_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
