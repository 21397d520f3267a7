"""Dataflow graphs in files: SDF3 XML and JSON there and back, DOT, and files that lie."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.dataflow import Actor, Channel, Graph, Rates
from edgewright.dataflow.formats.dot import dot
from edgewright.dataflow.formats.reader import parse_graph, read_graph
from edgewright.dataflow.formats.sdf3 import parse_sdf3
from edgewright.dataflow.formats.sdf3_text import sdf3
from edgewright.dataflow.formats.series import rates, spelt, times
from edgewright.dataflow.formats.text import from_json, to_json
from edgewright.errors import InputError, ModelError
from tests.dataflow.fuzz import damaged, seeds, survives
from tests.helpers.parameters import corpus
from tests.helpers.random_graphs import graphs

ONE = Rates((1,))
BIG = 2**53
WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), max_size=8)
NAMES = st.one_of(st.sampled_from(["a b", "q\"<&>'", "t\tn\nr\r", "", "ünï", "\\n", "1", "\N{GRINNING FACE}"]), WORDS)
COUNTS = st.one_of(st.integers(0, 5), st.integers(0, BIG))
TIMES = st.one_of(
    st.integers(0, BIG),
    st.integers(0, 3),
    st.fractions(0, 1000, max_denominator=1000),
    st.decimals(0, 99, places=3).map(Fraction),
)


@st.composite
def odd_graphs(draw) -> Graph:
    """Any graph that files can hold, consistent or not."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    actors = [_odd_actor(draw, name) for name in names]
    channels = draw(st.lists(NAMES, max_size=5, unique=True))
    one = st.sampled_from(actors)
    return Graph(draw(NAMES), tuple(actors), tuple(_odd_channel(draw, name, draw(one), draw(one)) for name in channels))


def _odd_actor(draw, name: str) -> Actor:
    initial, phases = draw(st.integers(0, 2)), draw(st.integers(1, 6))
    own = st.lists(TIMES, min_size=initial + phases, max_size=initial + phases).map(tuple)
    return Actor(name, phases, draw(st.none() | own), initial, draw(NAMES))


def _odd_channel(draw, name: str, source: Actor, target: Actor) -> Channel:
    is_used = draw(st.booleans())
    production, consumption = (_odd_rates(draw, actor, is_used) for actor in (source, target))
    return Channel(name, source.name, target.name, production, consumption, draw(COUNTS), draw(COUNTS), draw(NAMES))


def _odd_rates(draw, actor: Actor, is_used: bool) -> Rates:
    some = COUNTS if is_used else st.just(0)
    cycle = draw(st.lists(some, min_size=actor.phases, max_size=actor.phases))
    if is_used and not any(cycle):
        cycle[-1] = 1
    initial = draw(st.lists(COUNTS, min_size=actor.initial_phases, max_size=actor.initial_phases))
    return Rates(tuple(cycle), tuple(initial))


@given(st.one_of(odd_graphs(), graphs()))
def test_sdf3_there_and_back(graph):
    assert parse_sdf3(sdf3(graph).encode(), "graph.xml") == graph


@given(st.one_of(odd_graphs(), graphs()))
def test_json_there_and_back(graph):
    assert parse_graph(json.dumps(to_json(graph)).encode(), "graph.json") == graph
    assert from_json(to_json(graph), "graph") == graph


def example(**replaced: str) -> bytes:
    """A file with two actors, in which single attributes or pieces can be exchanged."""
    parts = {
        "head": '<?xml version="1.0" encoding="UTF-8"?>',
        "root": "sdf3",
        "kind": "csdf",
        "out": 'name="p" type="out" rate="2,1"',
        "in": 'name="p" type="in" rate="1,1,1"',
        "ends": 'srcActor="a" srcPort="p" dstActor="b" dstPort="p"',
        "tokens": "",
        "time": "1,2",
        "more_actors": "",
        "more_channels": "",
        "more_properties": "",
    } | replaced
    return """{head}
<{root} type="{kind}" version="1.0">
 <applicationGraph name="application">
  <{kind} name="graph" type="g">
   <actor name="a" type="t"><port {out}/></actor>
   <actor name="b" type="t"><port {in}/></actor>
   {more_actors}
   <channel name="c" {ends} {tokens}/>
   {more_channels}
  </{kind}>
  <{kind}Properties>
   <actorProperties actor="a"><processor type="x"><executionTime time="{time}"/></processor></actorProperties>
   {more_properties}
  </{kind}Properties>
 </applicationGraph>
</{root}>""".format(**parts).encode()


def test_what_a_file_says():
    channel = Channel("c", "a", "b", Rates((2, 1)), Rates((1, 1, 1)))
    assert parse_sdf3(example(), "f.xml") == Graph("graph", (Actor("a", 2, (1, 2)), Actor("b", 3)), (channel,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,1,1", Rates((1, 1, 1))),
        ("3*1", Rates((1, 1, 1))),
        ("2*3,0", Rates((3, 3, 0))),
        (" 2 * 3 , 0,1 ", Rates((3, 3, 0, 1))),
        ("1;3", Rates((3,), (1,))),
        ("2*0,7;2*1", Rates((1, 1), (0, 0, 7))),
    ],
)
def test_both_dialects_of_rate_lists(text, expected):
    series = rates(text, "here")
    assert Rates(*reversed(series.fitted(series.shape))) == expected
    again = rates(spelt(expected.cycle, expected.initial), "here")
    assert again.fitted(again.shape) == series.fitted(series.shape)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("0.25", Fraction(1, 4)),
        ("3/4", Fraction(3, 4)),
        ("2.0", 2),
        ("4/2", 2),
        ("1e-2", Fraction(1, 100)),
    ],
)
def test_times_are_exact(text, value):
    assert times(text, "here").fitted((0, 1)) == ((), (value,))


def test_times_are_written_as_decimals_where_these_end():
    assert spelt((1, Fraction(1, 4), Fraction(1, 3), Fraction(41, 2000))) == "1,0.25,1/3,0.0205"


def test_one_number_holds_for_every_phase():
    graph = parse_sdf3(example(time="7", **{"in": 'name="p" type="in" rate="1"'}), "f.xml")
    assert graph.by_name["a"].times == (7, 7)
    assert graph.by_name["b"].phases == 1
    both = example(out='name="p" type="out" rate="5"', time="9,9;1,2,3")
    assert parse_sdf3(both, "f.xml").channel["c"].production == Rates((5, 5, 5), (5, 5))


def test_the_last_default_processor_counts():
    """As in SDF3; the reference results for h263decoder, which marks two, need it."""
    processors = "".join(
        f'<processor type="{t}" {mark}><executionTime time="{time}"/></processor>'
        for t, mark, time in [("x", "", 1), ("y", 'default="true"', 2), ("z", 'default="true"', 3), ("w", "", 4)]
    )
    data = example(more_properties=f'<actorProperties actor="b">{processors}</actorProperties>')
    assert parse_sdf3(data, "f.xml").by_name["b"].times == (3, 3, 3)
    assert parse_sdf3(data.replace(b'default="true"', b'default="false"'), "f").by_name["b"].times == (1, 1, 1)


def test_token_sizes():
    assert parse_sdf3(example(tokens='size="4" initialTokens="6"'), "f.xml").channel["c"].token_bytes == 4
    size = '<channelProperties channel="c"><tokenSize sz="9"/></channelProperties>'
    channel = parse_sdf3(example(tokens='size="4" initialTokens="6"', more_properties=size), "f.xml").channel["c"]
    assert (channel.token_bytes, channel.tokens) == (9, 6)


def test_unknown_elements_prefixes_and_either_kind_are_fine():
    odd = '<thing><actor name="z"/></thing><x:thing xmlns:x="y">text</x:thing>'
    for kind in ("sdf", "csdf"):
        assert len(parse_sdf3(example(kind=kind, more_actors=odd), "f.xml").actors) == 2
    data = example().replace(b'csdf" version', b'sdf" version')  # the root's type says sdf
    assert not parse_sdf3(data, "f.xml").is_sdf


BILLION_LAUGHS = """<?xml version="1.0"?><!DOCTYPE sdf3 [<!ENTITY a "lol">""" + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)

BAD = {
    "entity bomb": (BILLION_LAUGHS + "]><sdf3>&i;</sdf3>", "document type .line 1."),
    "external entity": ('<!DOCTYPE s [<!ENTITY e SYSTEM "file:///etc/passwd">]><sdf3>&e;</sdf3>', "document type"),
    "external subset": ('<!DOCTYPE s SYSTEM "http://example.org/a.dtd"><sdf3/>', "document type"),
    "undeclared entity": (example(time="&e;"), "not well-formed"),
    "not closed": (b"<sdf3>", "not well-formed XML"),
    "encoding": (example(head='<?xml version="1.0" encoding="nonsense"?>'), "encoding|not well-formed"),
    "deep": (b"<sdf3>" + b"<a>" * 100_000, "inside each other"),
    "elements": (b"<sdf3>" + b"<a/>" * 300_000, "250,000 elements"),
    "html": (b"<html><body/></html>", "not SDF3: its root is <html>"),
    "no graph": (b'<sdf3 type="sadf"><applicationGraph/></sdf3>', "holds no graph .* 'sadf'"),
    "two graphs": (example(more_properties="</csdfProperties><sdf/><csdfProperties>"), "holds 2 graphs"),
    "no actors": (b"<sdf3><applicationGraph><sdf/></applicationGraph></sdf3>", "no actors"),
    "unknown actor": (example(ends='srcActor="aa" srcPort="p" dstActor="b" dstPort="p"'), "'aa' is not an actor"),
    "hint": (
        example(more_actors='<actor name="conv1"/>', ends='srcActor="conv" srcPort="p" dstActor="b" dstPort="p"'),
        "'conv' is not an actor of the graph; did you mean 'conv1'",
    ),
    "long list": (example(out=f'name="p" type="out" rate="{"1," * 1_000_000}1"'), "1,000,001 phases; at most"),
    "parts of it": (
        '{"channels": [], "actors": [' + '{"name": "a"},' * 200_000 + '{"name": "a"}]}',
        "200,001 actors and channels",
    ),
    "long name": (example(more_actors=f'<actor name="{"z" * 1001}"/>'), "is longer than 1,000 characters"),
    "unknown port": (example(ends='srcActor="a" srcPort="x" dstActor="b" dstPort="p"'), "'a' has no port 'x'"),
    "wrong way": (example(ends='srcActor="b" srcPort="p" dstActor="a" dstPort="p"'), "must be of type out"),
    "no end": (
        example(ends='srcActor="a" srcPort="p" dstActor="b"'),
        "<channel> in line 8 has no attribute 'dstPort'",
    ),
    "used twice": (
        example(more_channels='<channel name="d" srcActor="a" srcPort="p" dstActor="b" dstPort="p"/>'),
        r"two channels use port 'p' of actor 'a' \(line 5\) \(lines 8 and 9\)",
    ),
    "unused": (
        example(more_actors='<actor name="c"><port name="q" type="in" rate="1"/></actor>'),
        "no channel uses",
    ),
    "direction": (example(out='name="p" type="both" rate="1"'), "in or out, not 'both'"),
    "same actor": (example(more_actors='<actor name="a"/>'), r"actor 'a' is there twice \(lines 5 and 7\)"),
    "same port": (
        example(out='name="p" type="out" rate="1"/><port name="p" type="in" rate="1"'),
        "port 'p' is there",
    ),
    "same channel": (example(more_channels='<channel name="c"/>'), "channel 'c' is there twice"),
    "no name": (example(more_actors="<actor/>"), "<actor> in line 7 has no attribute 'name'"),
    "negative": (example(out='name="p" type="out" rate="2,-1"'), r"line 5\): '-1' is not a whole number"),
    "not whole": (example(out='name="p" type="out" rate="1.5"'), "'1.5' is not a whole number"),
    "other digits": (example(out='name="p" type="out" rate="²"'), "not a whole number"),
    "empty list": (example(out='name="p" type="out" rate=""'), "'' is not a whole number"),
    "no cycle": (example(out='name="p" type="out" rate="1;"'), "'' is not a whole number"),
    "semicolons": (example(out='name="p" type="out" rate="1;2;3"'), "more than one ';'"),
    "no times": (example(out='name="p" type="out" rate="0*1,2"'), r"'0\*1' is not"),
    "huge repeat": (
        example(out='name="p" type="out" rate="999999999*1"'),
        r"line 5\): 999,999,999 phases; at most 1,000,000",
    ),
    "huge rate": (example(out=f'name="p" type="out" rate="{"9" * 6000}"'), "2.53"),
    "lengths": (
        example(time="1,2,3"),
        r"'a' has 3 phases by the execution times of actor 'a' \(line 12\), but 2 phases by port 'p' of actor 'a'",
    ),
    "no rate at all": (example(out='name="p" type="out" rate="2*0"'), "'b' consumes from it, but 'a' never"),
    "time": (example(time="1,x"), "'x' is not a time"),
    "time by zero": (example(time="1/0"), "'1/0' is not a time"),
    "tokens": (example(tokens='initialTokens="-2"'), "'initialTokens' of <channel> in line 8 is '-2'"),
    "many tokens": (example(tokens=f'initialTokens="{BIG + 1}"'), "from 0 to 2.53"),
    "properties of nothing": (example(more_properties='<actorProperties actor="z"/>'), "'z' is not an actor"),
    "size of nothing": (example(more_properties='<channelProperties channel="z"/>'), "'z' is not a channel"),
    "described twice": (example(more_properties='<actorProperties actor="a"/>'), "described a second time"),
    "phases": (example(more_actors='<actor name="z" phases="0;0"/>'), "expected 1 to 1,000,000 phases"),
    "empty": (b" \n", "is empty"),
    "text": (b"hello", "neither XML nor JSON"),
    "json": (b"{,}", "is not JSON"),
    "deep json": (b"[" * 100_000, "too deeply"),
    "number of json": (b'{"name": ' + b"9" * 10_000 + b"}", "is not JSON"),
    "NaN": (b'{"name": NaN}', "NaN is no number"),
    "bytes": (b'{"name": "\xff"}', "is not JSON in UTF-8"),
    "list": (b"[]", "the file is a list; expected a table of keys"),
    "nothing in it": (b"{}", "actors is missing; expected objects in a list"),
    "half a character": (b'{"actors": [{"name": "\\ud800"}], "channels": []}', "half a character"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case):
    data, words = BAD[case]
    with pytest.raises((InputError, ModelError), match=words) as error:
        parse_graph(data.encode() if isinstance(data, str) else data, "some/file.x")
    assert "some/file.x" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_many_long_lists_are_refused_before_they_are_written_out():
    ports = "".join(f'<port name="q{i}" type="out" rate="999999*1"/>' for i in range(20_000))
    channels = "".join(
        f'<channel name="q{i}" srcActor="z" srcPort="q{i}" dstActor="y" dstPort="q{i}"/>' for i in range(20_000)
    )
    actors = f'<actor name="z">{ports}</actor><actor name="y">{ports.replace("out", "in")}</actor>'
    with pytest.raises(ModelError, match="39,999,960,007 rates and times"):
        parse_sdf3(example(more_actors=actors, more_channels=channels), "f.xml")


def bad_json(**replaced: object) -> dict[str, object]:
    channel = {"name": "c", "source": "a", "target": "a", "production": 1, "consumption": [1]} | replaced
    return {"actors": [{"name": "a"}], "channels": [{k: v for k, v in channel.items() if v is not None}]}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (bad_json(source="b"), "channel 'c': its source 'b' is not an actor"),
        (bad_json(production=None), r"channels\[0\]\.production is missing; expected numbers"),
        (bad_json(token=3), 'token is not a key here; did you mean "tokens"'),
        (bad_json(tokens=True), "tokens is true; expected a whole number"),
        (bad_json(tokens=-1), "is -1; expected a whole number"),
        (bad_json(tokens=10**400), "a number of more than 30 digits"),
        (bad_json(production=-1), "'-1' is not a whole number"),
        (bad_json(production=[1, None]), "holds None; expected numbers"),
        (bad_json(production=float("nan")), "holds nan; expected numbers"),
        (bad_json(production=["1;2"]), 'holds "1;2"'),
        (bad_json(production="2,2", consumption="3*1"), "'a' has 2 phases by 'production' of .* but 3 phases by"),
        (bad_json(name=3), "expected a text"),
        ({"actors": [{"name": "a", "initial_phases": 2}], "channels": []}, "but no 'phases'"),
        ({"actors": [{"name": "a", "phases": 0}], "channels": []}, "has 0 phases"),
        ({"actors": [{"name": "a", "phases": 10**9}], "channels": []}, "has 1,000,000,000 phases"),
        ({"actors": [{"name": "a", "times": {}}], "channels": []}, "times: holds a table"),
        ({"actors": [3], "channels": []}, r"actors\[0\] is 3"),
    ],
)
def test_bad_json(value, words):
    with pytest.raises(ModelError, match=f"^g: .*{words}"):
        from_json(value, "g")


def test_json_numbers_and_lists_do_as_well_as_text():
    value = bad_json(production=2, consumption=[1, 2, "3"])
    value["actors"] = [{"name": "a", "times": [0.1, "3/4", 2]}]
    graph = from_json(value, "folder/graph.json")
    assert graph.name == "graph"
    assert graph.actors == (Actor("a", 3, (Fraction(1, 10), Fraction(3, 4), 2)),)
    assert graph.channels == (Channel("c", "a", "a", Rates((2, 2, 2)), Rates((1, 2, 3))),)


def test_xml_cannot_hold_every_name():
    with pytest.raises(ModelError, match=r"U\+0001, which XML cannot hold; rename it, or write JSON"):
        sdf3(Graph("g", (Actor("a\x01"),), ()))


def test_files(tmp_path):
    graph = Graph("g", (Actor("a"),), (Channel("c", "a", "a", ONE, ONE, 1),))
    xml, text = tmp_path / "g.xml", tmp_path / "g.json"
    xml.write_text(sdf3(graph))
    text.write_text(json.dumps(to_json(graph)))
    (tmp_path / "wide.xml").write_bytes(sdf3(graph).replace("UTF-8", "UTF-16").encode("utf-16"))
    assert {read_graph(xml), read_graph(str(text)), read_graph(tmp_path / "wide.xml")} == {graph}
    os.mkfifo(tmp_path / "pipe.xml")
    for path, words in [
        (tmp_path / "none.xml", "there is no file"),
        (tmp_path, "is a directory"),
        (tmp_path / "pipe.xml", "no regular file"),
        ("a\0b", "cannot read"),
    ]:
        with pytest.raises(InputError, match=words):
            read_graph(path)
    (tmp_path / "big.xml").write_bytes(b" " * (17 << 20) + b"<sdf3/>")
    with pytest.raises(InputError, match="larger than 16 MiB"):
        read_graph(tmp_path / "big.xml")


def test_dot_shows_rates_in_brief_and_tokens_as_dots():
    ramp = Rates(tuple(range(30)))
    graph = Graph(
        'a "graph"',
        (Actor("in\\put", 4), Actor('say "hi"\n', 1, note="Conv2d"), Actor("c", 30, None, 2)),
        (
            Channel("x", "in\\put", 'say "hi"\n', Rates((128, 128, 128, 0)), ONE, 3),
            Channel("y", "c", 'say "hi"\n', Rates(ramp.cycle, (1, 1)), ONE, 12),
        ),
    )
    text = dot(graph)
    assert 'digraph "a \\"graph\\"" {' in text
    assert r'n0 [label="in\\put\n4 phases"];' in text
    assert '[label="say \\"hi\\"\N{REPLACEMENT CHARACTER}\\nConv2d"];' in text
    assert 'n0 -> n1 [label="●●●", taillabel="[3*128, 0]", headlabel="1", tooltip="x"];' in text
    assert 'n2 -> n1 [label="12 ●", taillabel="[1, 1; 0, 1, 2, 3, 4, 5, …]", headlabel="1", tooltip="y"];' in text
    assert r"c\n2 + 30 phases" in text


@given(odd_graphs())
def test_dot_is_one_statement_a_line(graph):
    lines = dot(graph).splitlines()
    string = r'"(?:[^"\\\n]|\\.)*"'
    statement = re.compile(rf"  (n\d+( -> n\d+)?|node|edge) \[(\w+=({string}|\w+)(, )?)*\];")
    assert re.fullmatch(rf"digraph {string} {{", lines[0])
    assert all(statement.fullmatch(line) for line in lines[1:-1])
    assert len(lines) == 4 + len(graph.actors) + len(graph.channels)


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_it():
    text = dot(parse_sdf3(example(), "f.xml"))
    drawn = subprocess.run(["dot", "-Tsvg"], input=text.encode(), capture_output=True, check=True, timeout=60)
    assert b"[2, 1]" in drawn.stdout


def test_damaged_files_raise_our_errors_only():
    outcomes = set()
    for number in range(600):
        random = Random(number)
        outcomes.add(survives(damaged(random, random.choice(seeds()), random.choice(seeds()))))
    assert outcomes == {"read", "ModelError", "InputError"}


def test_reference_graphs():
    root = corpus()
    table = root / "data" / "csdf" / "reference.tsv" if root else None
    if table is None or not table.exists():
        pytest.skip("set EDGEWRIGHT_CORPUS to a folder with data/csdf to test the reference graphs")
    for row in table.read_text().splitlines()[1:]:
        name, kind, actors, channels = row.split("\t")[:4]
        graph = read_graph(table.with_name(f"{name}.xml"))
        assert (kind == "sdf") == graph.is_sdf
        assert (len(graph.actors), len(graph.channels)) == (int(actors), int(channels))
        assert graph.has_times
        assert parse_sdf3(sdf3(graph).encode(), name) == graph
        assert from_json(to_json(graph), name) == graph
