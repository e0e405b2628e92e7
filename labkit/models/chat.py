"""ChatML, the conversation format of SmolLM2 and Qwen: one explicit renderer, no template engine.

A model's files hold the format as a program (a Jinja template). Running
programs that come with weights is a risk and needs an engine; the format itself is one line:
`<|im_start|>role`, newline, the text, `<|im_end|>`, newline.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labkit.models.json_object import read_json

Message = Mapping[str, str]

START, END = "<|im_start|>", "<|im_end|>"
ROLES = ("system", "user", "assistant")

_DEFAULT_SYSTEM = re.compile(re.escape(START) + r"system(?:\n|\\n)(.*?)" + re.escape(END))


@dataclass(frozen=True)
class ChatML:
    """Renders conversations. `default_system` opens those that bring no system message."""

    default_system: str | None = None

    @classmethod
    def from_directory(cls, directory: str | Path) -> ChatML | None:
        """The format of a Hugging Face model directory; None if it has none or another one.

        Raises CheckpointError for a damaged file.
        """
        config = Path(directory) / "tokenizer_config.json"
        if not config.is_file():
            return None
        template = read_json(config).get("chat_template")
        return cls.from_template(template if isinstance(template, str) else None)

    @classmethod
    def from_template(cls, template: str | None) -> ChatML | None:
        """The format a model's template describes; None if there is none, or it is another one."""
        if template is None or START not in template or END not in template:
            return None
        default = _DEFAULT_SYSTEM.search(template)
        return cls(default[1] if default else None)

    def render(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
        """Messages `{"role": ..., "content": ...}` as the text to be encoded.

        `add_generation_prompt` opens the assistant's turn, so that a reply comes next.
        Raises ValueError for an unknown role.
        """
        turns = list(messages)
        for message in turns:
            if message["role"] not in ROLES:
                raise ValueError(f"role {message['role']!r} is none of {', '.join(ROLES)}")
        if self.default_system is not None and turns and turns[0]["role"] != "system":
            turns.insert(0, {"role": "system", "content": self.default_system})
        text = "".join(f"{START}{turn['role']}\n{turn['content']}{END}\n" for turn in turns)
        return text + (f"{START}assistant\n" if add_generation_prompt else "")

    def ask(self, question: str) -> str:
        """A conversation of one question, ready for its answer."""
        return self.render([{"role": "user", "content": question}])
