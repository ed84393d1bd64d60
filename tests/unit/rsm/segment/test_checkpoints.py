from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsm.segment.checkpoints import (
    MetaProperties,
    parse_leader_epochs,
    parse_meta_properties,
    parse_partition_metadata,
)
from rsm.segment.epochs import Lineage
from rsm.segment.errors import CorruptError, UnsupportedError
from rsm.segment.ids import id_to_text

ID = "4Tv5UBxmQ_iLNIDSJmTe8w"
META = f"#\n#Fri Nov 21 12:00:00 UTC 2025\nversion=1\ncluster.id=c1\nnode.id=3\ndirectory.id={ID}\n"


def checkpoint(*lines: str, count: int | None = None) -> bytes:
    head = ("0", str(len(lines) if count is None else count))
    return "".join(f"{line}\n" for line in (*head, *lines)).encode()


@given(
    epochs=st.sets(st.integers(0, (1 << 31) - 1), max_size=8),
    steps=st.lists(st.integers(0, 1 << 40), min_size=8, max_size=8),
)
def test_leader_epochs_when_well_formed_then_lineage(epochs: set[int], steps: list[int]) -> None:
    pairs = [(epoch, sum(steps[: n + 1])) for n, epoch in enumerate(sorted(epochs))]

    content = checkpoint(*(f"{epoch} {offset}" for epoch, offset in pairs))

    assert parse_leader_epochs(content, file="f") == Lineage.of(*pairs)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"0\n",
        b"0\n1\n",
        b"1\n0\n",
        b"0\n-1\n",
        checkpoint("0 0", "1 100")[:-1],
        checkpoint("0 0", "1 100")[:-2],
        checkpoint("0 0", count=2),
        checkpoint("0 0", count=0),
        checkpoint("0"),
        checkpoint("0 0 0"),
        checkpoint("0  0"),
        checkpoint("0\t0"),
        checkpoint("-1 0"),
        checkpoint("0 -1"),
        checkpoint("0 x"),
        checkpoint("0 \u0661"),
        checkpoint("0 9223372036854775808"),
        checkpoint("0 99999999999999999999999"),
        checkpoint("1 0", "0 10"),
        checkpoint("0 0", "0 10"),
        checkpoint("0 10", "1 9"),
        checkpoint("0 0") + b"\n",
        b"0\n1\n0 \xff\n",
        bytes(64),
    ],
)
def test_leader_epochs_when_malformed_then_corrupt_names_the_file(content: bytes) -> None:
    with pytest.raises(CorruptError) as caught:
        parse_leader_epochs(content, file="leader-epoch-checkpoint")

    assert caught.value.context["file"] == "leader-epoch-checkpoint"


def test_leader_epochs_when_a_line_is_malformed_then_corrupt_names_the_line() -> None:
    with pytest.raises(CorruptError) as caught:
        parse_leader_epochs(checkpoint("0 0", "1 x"), file="f")

    assert caught.value.context["line"] == 4
    assert caught.value.context["found"] == "x"


@given(data=st.binary(max_size=40))
def test_leader_epochs_when_content_is_random_then_lineage_or_corrupt(data: bytes) -> None:
    try:
        found = parse_leader_epochs(data, file="f")
    except CorruptError:
        return

    assert isinstance(found, Lineage)


@given(topic_id=st.uuids())
def test_partition_metadata_when_well_formed_then_topic_id(topic_id: UUID) -> None:
    content = f"version: 0\ntopic_id: {id_to_text(topic_id)}\n".encode()

    assert parse_partition_metadata(content, file="f") == topic_id


@pytest.mark.parametrize(
    "content",
    [
        "",
        "version: 0\n",
        f"version: 1\ntopic_id: {ID}\n",
        f"version: 0\ntopic: {ID}\n",
        f"version: 0\ntopic_id:{ID}\n",
        f"version: 0\ntopic_id: {ID[:-1]}\n",
        f"version: 0\ntopic_id: {ID}x\n",
        f"version: 0\ntopic_id: {ID}\nmore\n",
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n",
    ],
)
def test_partition_metadata_when_malformed_then_corrupt(content: str) -> None:
    with pytest.raises(CorruptError):
        parse_partition_metadata(content.encode(), file="f")


def test_meta_properties_when_of_version_1_then_all_is_read() -> None:
    found = parse_meta_properties(META.encode(), file="f")

    assert (found.cluster_id, found.node_id) == ("c1", 3)
    assert found.directory_id is not None
    assert id_to_text(found.directory_id) == ID


def test_meta_properties_when_of_version_0_then_broker_id_is_the_node_id() -> None:
    content = b"#\nversion=0\nbroker.id=7\ncluster.id=old\n"

    assert parse_meta_properties(content, file="f") == MetaProperties(cluster_id="old", node_id=7)


@pytest.mark.parametrize(
    "content",
    [
        "",
        META.replace("version=1\n", ""),
        META.replace("cluster.id=c1\n", ""),
        META.replace("cluster.id=c1", "cluster.id="),
        META.replace("node.id=3\n", ""),
        META.replace("node.id=3", "node.id=-1"),
        META.replace("node.id", "broker.id"),
        META.replace(ID, "x"),
        META + "node.id=4\n",
        META + "x=\\u12\n",
    ],
)
def test_meta_properties_when_malformed_then_corrupt(content: str) -> None:
    with pytest.raises(CorruptError) as caught:
        parse_meta_properties(content.encode(), file="meta.properties")

    assert caught.value.context["file"] == "meta.properties"


def test_meta_properties_when_of_another_version_then_unsupported() -> None:
    with pytest.raises(UnsupportedError):
        parse_meta_properties(META.replace("version=1", "version=2").encode(), file="f")
