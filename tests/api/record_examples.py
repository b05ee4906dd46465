"""Write the responses of the examples of the OpenAPI document anew, unless each is such as it was recorded.

python -m tests.api.record_examples
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Any, Final

import service.api.openapi
from service.api.openapi import Example
from tests.api.example_story import JSON, WITHOUT_EFFECT, Story, agree, body_of, empty_world, media_type_of

FILE: Final = Path(service.api.openapi.__file__).with_name("openapi_examples.json")
WIDTH: Final = 118
SECRET: Final = "made-up-for-this-page-and-kept-by-no-holder"


def written(part: Any, indent: int = 0) -> str:
    """JSON with each part on one line if it fits."""
    line = json.dumps(part, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(part, dict | list):
        return line
    pad = " " * (indent + 2)
    if isinstance(part, list):
        return "[\n" + ",\n".join(pad + written(each, indent + 2) for each in part) + "\n" + " " * indent + "]"
    members = (f"{pad}{json.dumps(name)}: {written(each, indent + 2)}" for name, each in part.items())
    return "{\n" + ",\n".join(members) + "\n" + " " * indent + "}"


async def recorded() -> dict[str, Example] | None:
    """The examples with their responses; None where each is such as before."""
    world, found, is_old = empty_world(), {}, False
    async for name, example, response in Story(world).told():
        if name in WITHOUT_EFFECT:
            found[name] = example
            continue
        if not response.is_success:
            raise ValueError(f"{name}: {response.text}")
        media_type, body = media_type_of(response), body_of(response) if response.content else None
        is_old = is_old or not agree(example.get("response", {}).get(media_type), body)
        found[name] = {**example, **({"response": {media_type: body}} if media_type else {})}
    await world.close()
    ids = {
        "principal": found["create_principal"]["response"][JSON]["id"],
        "query_id": found["ask"]["response"][JSON]["id"],
    }
    for example in found.values():
        stated = example.get("parameters", {})
        stated |= {name: ids[name] for name in ids.keys() & stated.keys()}
    return found if is_old else None


def main() -> None:
    """Record and write; keys are kept out of the file."""
    found = asyncio.run(recorded())
    if found is not None:
        text = re.sub(r"(sparing_[0-9a-f]{32}_)[\w-]{43}", rf"\g<1>{SECRET}", written(found))
        FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
