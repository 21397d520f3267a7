"""Files of applications with scenarios: what they say, and every refusal with its sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgewright.adaptive.description import AdaptiveFile, read_adaptive
from edgewright.application.description import read_application
from edgewright.errors import InputError
from edgewright.platform.schema import parse_toml
from edgewright.program.switching import SwitchPolicy

NETWORKS = '[[network]]\nname = "eco"\nfile = "eco.onnx"\n[[network]]\nname = "full"\nfile = "full.onnx"\n'
TWO = NETWORKS + '[[scenario]]\nname = "eco"\n[[scenario]]\nname = "full"\n'
LOW = '[[rule]]\nsignal = "battery"\nbelow = 0.25\nuntil = 0.35\nrequest = "eco"\n'
UNSURE = '[[rule]]\nscenario = "eco"\nmargin_below = 0.2\nrequest = "full"\n'


def parsed(text: str) -> AdaptiveFile:
    return parse_toml(text, "app.toml", AdaptiveFile, "an application with scenarios")


def rule(**keys: object) -> str:
    """A [[rule]] of these keys."""
    lines = [f"{key} = {value!r}".replace("'", '"') for key, value in keys.items()]
    return "\n".join(["[[rule]]", *lines, ""])


def test_everything_that_a_file_may_say():
    file = parsed(
        '[adapt]\npolicy = "overlap"\nprocessors = 2\nstart = "full"\nfallback = "big"\ndelay = "20 ms"\n'
        'dwell = "5 s"\nshare = ["I", "O"]\n' + NETWORKS + '[[scenario]]\nname = "big"\nnetwork = "full"\n'
        'accuracy = 0.82\npower = "11.2 W"\nlayer_times = [1, 2.5]\n'
        '[[scenario]]\nname = "eco"\n[[scenario]]\nname = "full"\n' + LOW + UNSURE
    )
    assert (file.adapt.policy, file.start, file.fallback) == (SwitchPolicy.OVERLAP, "full", "big")
    assert (file.adapt.delay, file.adapt.dwell) == (0.02, 5.0)
    assert [one.value for one in file.adapt.share] == ["I", "O"]
    assert [file.network_of(name).name for name in file.scenario_names] == ["full", "eco", "full"]
    assert file.scenarios[0].layer_times == (1, 2.5)
    assert [one.is_cascade for one in file.rules] == [False, True]


def test_defaults_are_the_first_scenario_and_the_naive_policy():
    file = parsed(TWO)
    assert (file.start, file.fallback, file.adapt.policy, file.adapt.dwell) == ("eco", "eco", SwitchPolicy.FINISH, 0)
    assert [one.value for one in file.adapt.share] == ["I", "O", "par"]


def test_a_file_without_scenarios_stays_an_ordinary_application(tmp_path: Path):
    path = tmp_path / "app.toml"
    path.write_text(NETWORKS)
    assert parsed(NETWORKS).networks == read_application(path).networks
    with pytest.raises(InputError, match=r"scenario is missing; expected two or more .* edgewright app"):
        read_adaptive(path)


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(LOW + rule(signal="battery", above=0.6, until=0.5, request="full"), id="apart"),
        pytest.param(
            LOW + rule(signal="battery", above=0.35, until=0.25, request="full"), id="each active when the other is not"
        ),
        pytest.param(
            rule(signal="battery", below=0.1, request="eco") + rule(signal="battery", below=0.3, request="full"),
            id="two levels of one signal, the stricter first",
        ),
        pytest.param(LOW + rule(signal="battery", below=0.2, until=0.5, request="full"), id="ends later"),
        pytest.param(LOW + rule(signal="temperature", below=0.25, until=0.35, request="full"), id="another signal"),
        pytest.param(
            rule(scenario="eco", margin_below=0.1, request="full") + UNSURE.replace("0.2", "0.3"),
            id="two margins, the smaller first",
        ),
    ],
)
def test_rules_that_may_stand_together(rules: str):
    assert len(parsed(TWO + rules).rules) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NETWORKS + '[[scenario]]\nname = "eco"\n', "nothing to switch to; expected two"),
        (TWO.replace('"full"\n', '"eco"\n', 2), 'network\\[1\\].name is "eco", which is taken'),
        (TWO + '[[scenario]]\nname = "full"\n', 'scenario\\[2\\].name is "full", which is taken'),
        (
            TWO + '[[scenario]]\nname = "best"\n',
            'scenario\\[2\\].name is "best", which no network has; expected one of eco, full',
        ),
        (TWO + '[[scenario]]\nname = "best"\nnetwork = "ful"\n', 'scenario\\[2\\].network is "ful", which no network'),
        (
            TWO + '[[network]]\nname = "more"\nfile = "more.onnx"\n',
            'network\\[2\\].name is "more", which no scenario runs',
        ),
        (TWO + "accuracy = 82\n", r"scenario\[1\].accuracy is 82; expected a share from 0 to 1"),
        (TWO + "accuracy = nan\n", r"scenario\[1\].accuracy is nan; expected a share"),
        (TWO + 'power = "11 V"\n', r"scenario\[1\].power: .* expected a power"),
        (TWO + "layer_times = [1, -2]\n", r"scenario\[1\].layer_times\[1\] is -2; expected a list of seconds"),
        (TWO + 'layer_times = ["1"]\n', r"scenario\[1\].layer_times\[0\] is \"?1\"?; expected a list of seconds"),
        (
            TWO.replace(
                '[[scenario]]\nname = "full"\n', '[[scenario]]\nname = "full"\nlabels = ["cat", "cow"]\n'
            ).replace('[[scenario]]\nname = "eco"\n', '[[scenario]]\nname = "eco"\nlabels = ["cat", "dog"]\n'),
            r'scenario\[1\].labels has "cow" for class 1, and scenario .eco. has "dog"; expected the same labels',
        ),
        (
            TWO.replace('[[scenario]]\nname = "eco"\n', '[[scenario]]\nname = "eco"\nlabels = ["cat"]\n')
            + 'labels = ["cat", "dog"]\n',
            r'scenario\[1\].labels has "dog" for class 1, and scenario .eco. has no label',
        ),
        (TWO + "layer_times = [0, 0]\n", "layer_times has no time above 0"),
        ('[adapt]\npolicy = "overlay"\n' + TWO, 'adapt.policy is "?overlay"?; expected .* mean "overlap"'),
        ('[adapt]\npolicy = "overlap"\n' + TWO, 'adapt.policy is "overlap" on one processor.* processors = 2'),
        ("[adapt]\nprocessors = 0\n" + TWO, "adapt.processors is 0; expected a number from 1"),
        ('[adapt]\nstart = "big"\n' + TWO, 'adapt.start is "big", which no scenario has; expected one of eco, full'),
        ('[adapt]\nfallback = "big"\n' + TWO, 'adapt.fallback is "big", which no scenario has'),
        (
            '[adapt]\nshare = ["I", "weights"]\n' + TWO,
            r'adapt.share\[1\] is "?weights"?; expected a list of attributes',
        ),
        ('[adapt]\nshare = ["I", "X"]\n' + TWO, r'adapt.share\[1\] is "?X"?; expected a list of attributes'),
        ('[adapt]\nshare = ["I", "I"]\n' + TWO, "adapt.share names an attribute twice"),
        ('[adapt]\ndelay = "0 ms"\n' + TWO, "adapt.delay: .*must be more than zero"),
        ('[adapt]\ndwell = "-1 s"\n' + TWO, "adapt.dwell: "),
        ("[adapt]\ndwell = true\n" + TWO, "adapt.dwell: "),
        ('[adapt]\nspeed = "full"\n' + TWO, "adapt.speed is not a key here"),
        ("[adapt]\nprocessors = 2\n" + NETWORKS, r"adapt is given, and no scenario; expected two or more"),
        (NETWORKS + LOW, r"rule is given, and no scenario; expected two or more"),
        (
            TWO + '[[relation]]\nkind = "parallel"\nnetworks = ["eco", "full"]\n',
            r"relation\[0\].kind makes eco and full parallel, and scenarios run one at a time",
        ),
        (TWO + LOW.replace('"eco"', '"ecco"'), r'rule\[0\].request is "ecco", which no scenario has'),
        (TWO + UNSURE.replace('"eco"', '"ecco"'), r'rule\[0\].scenario is "ecco", which no scenario has'),
        (TWO + LOW.replace("until = 0.35", "until = 0.15"), r"rule\[0\].until is 0.15, less than below, 0.25"),
        (TWO + rule(signal="t", above=70.0, until=80.0, request="eco"), r"rule\[0\].until is 80, more than above, 70"),
        (TWO + LOW.replace("below = 0.25", "below = inf"), r"rule\[0\].below is inf; expected a number"),
        (TWO + rule(signal="battery", request="eco"), r"rule\[0\].below is missing; expected one threshold"),
        (TWO + LOW + "above = 0.5\n", r"rule\[0\].below contradicts above; expected one threshold"),
        (TWO + rule(below=0.2, request="eco"), r"rule\[0\].signal is missing"),
        (TWO + rule(signal="battery", below=0.2), r"rule\[0\].request is missing; expected the scenario to run"),
        (TWO + LOW + "margin_below = 0.1\n", r"rule\[0\].margin_below is for confidence cascades"),
        (TWO + UNSURE + "below = 0.1\n", r"rule\[0\].below is for rules on a signal"),
        (TWO + rule(scenario="eco", request="full"), r"rule\[0\].margin_below is missing"),
        (TWO + UNSURE.replace("0.2", "0.0"), r"rule\[0\].margin_below is 0.0; expected a positive number"),
        (TWO + UNSURE.replace('"full"', '"eco"'), r'rule\[0\].request is "eco", whose results it is about'),
        (TWO + UNSURE + UNSURE.replace("0.2", "0.1"), r"rule\[1\] can never fire: rule\[0\] is active whenever"),
        (
            TWO + UNSURE + rule(scenario="full", margin_below=0.1, request="eco"),
            r"rule\[1\].request closes a circle of cascades",
        ),
        (
            TWO + LOW + rule(signal="battery", below=0.2, until=0.3, request="full"),
            r"rule\[1\] can never fire: rule\[0\] is active whenever it is",
        ),
        (
            TWO + rule(signal="t", above=60.0, request="eco") + rule(signal="t", above=70.0, request="full"),
            r"rule\[1\] can never fire",
        ),
        (
            '[adapt]\ndwell = "1 s"\n'
            + TWO
            + rule(signal="t", below=20.0, request="eco")
            + rule(signal="t", above=10.0, request="full")
            + LOW,
            r"rule\[2\] can never fire: rule\[0\] or rule\[1\] is active for every value of t, and both come first",
        ),
        (
            TWO + LOW + rule(signal="battery", above=0.3, request="full"),
            r"rule\[1\] contradicts rule\[0\]: both are active for some values of battery, and adapt.dwell is 0",
        ),
    ],
)
def test_what_is_refused(text: str, said: str):
    with pytest.raises(InputError, match=f"^app.toml: .*{said}"):
        parsed(text)


def test_rules_with_a_gap_leave_room_for_others():
    """Between two thresholds of one signal neither rule is active; confidence cascades do not wait for a gap."""
    dwell = '[adapt]\ndwell = "1 s"\n'
    low, high = rule(signal="t", below=10.0, request="eco"), rule(signal="t", above=10.0, request="full")
    assert len(parsed(dwell + TWO + low + high + LOW).rules) == 3
    assert len(parsed(dwell + TWO + low.replace("10", "20") + high + UNSURE).rules) == 3


def test_a_dwell_time_settles_contradictory_rules():
    rules = LOW + rule(signal="battery", above=0.3, request="full")
    assert len(parsed('[adapt]\ndwell = "1 s"\n' + TWO + rules).rules) == 2
