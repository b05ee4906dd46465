"""A reader of Dockerfiles, small because ours is: instructions one a writer, backslashes to continue, comments."""

from dataclasses import dataclass, field


@dataclass(kw_only=True, slots=True)
class Stage:
    """One FROM and what follows it: the base as written, the stage's name, its instructions in order."""

    base: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def arguments(self, instruction: str) -> list[str]:
        """The arguments of each such instruction, such as every RUN."""
        return [rest for word, rest in self.instructions if word == instruction]


def read_dockerfile(text: str) -> tuple[dict[str, str], list[Stage]]:
    """The global build arguments with their defaults, and the stages in order; ValueError for a nameless stage."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for word, rest in _instructions(text):
        if word == "FROM":
            base, separator, name = rest.partition(" AS ")
            if not separator:
                message = f"a stage without a name: FROM {rest}"
                raise ValueError(message)
            stages.append(Stage(base=base, name=name))
        elif stages:
            stages[-1].instructions.append((word, rest))
        else:
            name, _, default = rest.partition("=")
            arguments[name] = default
    return arguments, stages


def _instructions(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    found = []
    for line in whole.splitlines():
        word, _, rest = line.strip().partition(" ")
        found.append((word.upper(), " ".join(rest.split())))
    return found
