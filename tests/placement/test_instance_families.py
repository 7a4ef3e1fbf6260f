from pathlib import Path

import pytest

from placement.bounds import bound
from placement.families import FAMILIES, alibaba, instance
from placement.packing import pack
from placement.valid import violations

PODS = Path("/work/shared/data/alibaba-gpu-2023-pods.csv")


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_an_instance_is_the_same_every_time_and_has_room_for_all(family: str) -> None:
    problem = instance(family, 300, 20, 4)

    assert problem == instance(family, 300, 20, 4)
    assert problem != instance(family, 300, 20, 5)
    assert sum(item.replicas for item in problem.items) == len(problem.places) == 300


def test_pods_that_share_a_gpu_are_counted_by_share(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_text("name,num_gpu,gpu_milli\na,1,460\nb,1,460\nc,1,1000\nd,2,1000\ne,0,0\n")
    problem = alibaba(path)

    assert [(item.name, item.replicas) for item in problem.items] == [("share-0460", 2)]


@pytest.mark.skipif(not PODS.exists(), reason="Alibaba's trace is not on this machine")
def test_the_pods_of_alibabas_trace_are_packed_into_the_fewest_gpus_there_can_be() -> None:
    problem = alibaba(PODS)
    packing = pack(problem)

    assert violations(problem, packing) == ()
    assert len(packing.used) == bound(problem).places == 1965
