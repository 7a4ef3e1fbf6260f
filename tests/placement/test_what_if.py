"""Each verb of a what-if changes what it says, and odd words get a sentence."""

import pytest

from modelyard.contract.errors import ConfigError
from placement.planned import make_plan
from placement.what_if import Supposed, suppose
from tests.placement.fleets import figure_7, memory_of

START = Supposed(figure_7(), memory_of(figure_7()))


def without_a_place(supposed: Supposed) -> list[str]:
    plan = make_plan(supposed.spec, supposed.memory, lost=supposed.lost, partial=True)
    return [name.partition("@")[0] for name, _ in plan.packing.unplaced]


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ("add-node=h100:1", []),
        ("add-node=h100", []),
        ("remove-node=h100-0", ["support-medium", "support-next"]),
        ("remove-node=h100-0-d0", ["support-medium", "support-next"]),
        ("add-model=extra:memory_gb=40,pool=h100,priority=2", ["support-next"]),
        ("add-model=extra:memory_gb=80,pool=h100,replicas=3,priority=-1", ["extra"]),
        ("remove-model=support-large@1.0.0", []),
        ("remove-model=support-large", []),
        ("replicas=support-medium@1.0.0:2", ["support-next"]),
        ("replicas=support-medium:2", ["support-next"]),
        ("swappable=support-medium+support-next", []),
    ],
)
def test_each_verb_changes_who_has_a_place(words: str, missing: list[str]) -> None:
    if missing == ["extra"]:
        assert "extra" in without_a_place(suppose(START, words))
    else:
        assert without_a_place(suppose(START, words)) == missing


def test_changes_follow_each_other() -> None:
    then = suppose(suppose(START, "lose-zone=local"), "add-node=h100:4")
    assert then.lost == {"h100-0", "h100-1", "h100-2"}
    assert without_a_place(then) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("add-nodes=h100", "write one of add-node=POOL:COUNT"),
        ("add-node", "write one of add-node=POOL:COUNT"),
        ("add-node=", "write one of add-node=POOL:COUNT"),
        ("add-node=l4", "l4: no such pool in node_pools: write one of h100"),
        ("add-node=h100:0", "end it with a whole number from 1 to 10000"),
        ("add-node=h100:-1", "end it with a whole number from 1 to 10000"),
        ("lose-zone=z", "z: no machine is in that zone: write one of local"),
        ("remove-model=x@1", "x: no such model in the fleet: write one of support-large"),
        ("remove-model=support-large@9", "has no such version: check its number"),
        ("replicas=support-large@9:2", "no such version: write one of support-large@1.0.0"),
        ("swappable=support-large+x", "x: no such model in the fleet"),
        ("add-model=support-large:memory_gb=1,pool=h100", "the fleet has a model of that name"),
        ("add-model=x:pool=h100", "say how large it is: memory_gb=GB"),
        ("add-model=x:memory_gb=1", "pool: required and missing: add it"),
        ("add-model=x:memory_gb=1,pool=l4", "l4: no such pool in node_pools: write one of h100"),
        ("add-model=X Y:memory_gb=1,pool=h100", "a model's name has a-z, 0-9"),
        ("add-model=x:memory_gb", "'memory_gb' is no FIELD=VALUE"),
        ("add-model=x:memory_gb=much,pool=h100", "memory_gb"),
    ],
)
def test_odd_words_get_a_sentence(words: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as error:
        suppose(START, words)
    assert sentence in str(error.value)
