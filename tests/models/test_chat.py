"""ChatML, against the template that came with the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from labkit.models.chat import ChatML
from labkit.models.checkpoint import open_checkpoint

from .conftest import LLAMA_CONFIG, random_weights

CONVERSATIONS = [
    [{"role": "user", "content": "Hello?"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " 2 + 2 \n"}],
    [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "<b>é</b>"},
    ],
    [],
]


@pytest.mark.parametrize("messages", CONVERSATIONS)
@pytest.mark.parametrize("add_generation_prompt", [True, False])
def test_renderer_writes_what_the_models_own_template_writes(
    messages: list[dict[str, str]], add_generation_prompt: bool, smollm2: Path
) -> None:
    jinja2 = pytest.importorskip("jinja2")
    source = json.loads((smollm2 / "tokenizer_config.json").read_text())["chat_template"]
    expected = jinja2.Template(source).render(
        messages=messages, add_generation_prompt=add_generation_prompt
    )
    chat = open_checkpoint(smollm2).chat_format()
    assert chat is not None
    assert chat.render(messages, add_generation_prompt=add_generation_prompt) == expected


def test_asking_opens_the_reply() -> None:
    text = ChatML("Be kind.").ask("Why?")
    assert text == (
        "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert ChatML().ask("Why?").startswith("<|im_start|>user\n")


def test_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'robot' is none of system, user, assistant"):
        ChatML().render([{"role": "robot", "content": ""}])


@pytest.mark.parametrize("template", [None, "[INST] {{ messages }} [/INST]"])
def test_model_without_chatml_has_none(
    template: str | None, hf_directory: Callable[..., Path]
) -> None:
    directory = hf_directory()
    assert open_checkpoint(directory).chat_format() is None
    (directory / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    assert open_checkpoint(directory).chat_format() is None


def test_format_without_a_default_system_message_adds_none(
    hf_directory: Callable[..., Path],
) -> None:
    directory = hf_directory()
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    )
    (directory / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    assert open_checkpoint(directory).chat_format() == ChatML(None)


def test_gguf_brings_its_conversation_format(made_gguf: Callable[..., Path]) -> None:
    template = "{{ '<|im_start|>system\nBe wise.<|im_end|>\n' }}"
    path = made_gguf(
        LLAMA_CONFIG,
        random_weights(LLAMA_CONFIG),
        extra_fields={"tokenizer.chat_template": template},
    )
    assert open_checkpoint(path).chat_format() == ChatML("Be wise.")
