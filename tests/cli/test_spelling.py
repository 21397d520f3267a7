"""British and American spellings mean the same, in verbs, options and values; the help shows the British ones."""

import re

import click
import pytest
from click.testing import CliRunner

from edgewright import samples
from edgewright.cli import main
from edgewright.cli.main import VERBS, british, loaded

# British words of the field and what an American writes.
WORDS = {
    "minimise": "minimize",
    "optimise": "optimize",
    "analyse": "analyze",
    "quantised": "quantized",
    "quantisation": "quantization",
    "sanitise": "sanitize",
    "initialised": "initialized",
    "colour": "color",
    "behaviour": "behavior",
    "neighbour": "neighbor",
    "centre": "center",
    "labelled": "labeled",
    "modelling": "modeling",
    "catalogue": "catalog",
    "grey": "gray",
    "licence": "license",
    "size": "size",
    "resize": "resize",
}


@pytest.mark.parametrize(("ours", "theirs"), WORDS.items(), ids=lambda word: word)
def test_words(ours, theirs):
    assert british(theirs) == ours and british(ours) == ours
    assert british(f"no-{theirs}-input") == f"no-{ours}-input"


def tokens(verb):
    """Every name of an option and every value of a choice."""
    for parameter in loaded(verb).params:
        yield from (name.lstrip("-") for name in (*parameter.opts, *parameter.secondary_opts))
        if isinstance(parameter.type, click.Choice):
            yield from parameter.type.choices


@pytest.mark.parametrize("verb", VERBS)
def test_what_the_help_shows_is_british(verb):
    assert british(verb) == verb
    assert [british(token) for token in tokens(verb)] == list(tokens(verb))


def american(option):
    return re.sub(r"[a-z]+", lambda word: WORDS.get(word[0], word[0]), option)


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_known_by_both_names(verb):
    """Options that differ are asked for without an argument, or for a value that they do not have."""
    context = {**main.context_settings, "resilient_parsing": False}  # click remembers the names of --help
    names = {name for parameter in loaded(verb).params for name in parameter.opts if name.startswith("--")}
    for name in sorted(names):
        if american(name) == name:
            continue
        for spelling in (name, american(name)):
            with pytest.raises(click.UsageError) as caught:
                loaded(verb).make_context(verb, [spelling], **context)
            assert not isinstance(caught.value, click.NoSuchOption), spelling


def test_a_command_in_american(tmp_path):
    model = samples.write("lenet5", tmp_path)
    run = CliRunner().invoke
    ours = run(main, ["plan", str(model), "--minimise", "ram", "--json"])
    theirs = run(main, ["plan", str(model), "--minimize=ram", "--json"])
    assert ours.exit_code == theirs.exit_code == 0 and ours.output == theirs.output
    assert run(main, ["csdf", str(model), "--analyze"]).exit_code == 0
    assert "--minimize" not in run(main, ["plan", "--help"]).output


def test_values_that_are_no_tokens_stay_as_they_are(tmp_path):
    result = CliRunner().invoke(main, ["plan", str(tmp_path / "optimized.onnx")])
    assert "optimized.onnx" in result.output
