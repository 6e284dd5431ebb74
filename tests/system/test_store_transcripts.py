"""What clients of several releases of PyTorch sent, and what their own servers answered, replayed
against our server byte by byte. scripts/record-transcripts made the files and explains their form."""
# ctest: gate

import itertools
import pathlib

import pytest
from raw_store import Raw
from store_servers import TorchServer, ours  # noqa: F401  `ours` is a fixture

TRANSCRIPTS = sorted(pathlib.Path(__file__).resolve().parents[1].glob("transcripts/torch-*.txt"))
RELEASES = ["2.2", "2.5", "2.8", "2.15"]

# The requests that a client of each release must have sent, or its transcript lacks a part.
KNOWN = {"2.2": set(range(13)) - {5}, "2.5": set(range(14)), "2.8": set(range(17)), "2.15": set(range(19))}


def read_transcript(path):
    """{session: [(what the client was asked, "1>" or "1<", bytes)]}"""
    sessions = {}
    for line in path.read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "=":
            passed = sessions[rest] = []
        elif kind == "#":
            asked = rest
        elif kind:
            passed.append((asked, kind, from_hex(rest)))
    return sessions


def from_hex(line):
    """`ab01 00*16` is the bytes ab, 01, and sixteen times 00."""
    data = b""
    for part in line.split():
        digits, _, times = part.partition("*")
        data += bytes.fromhex(digits) * int(times or 1)
    return data


def together(passed):
    """Consecutive bytes of one connection in one direction become one entry, named by the last asked."""
    for kind, entries in itertools.groupby(passed, key=lambda entry: entry[1]):
        entries = list(entries)
        yield entries[-1][0], kind, b"".join(data for _, _, data in entries)


def replay(server, passed, piece):
    connections = {}
    for asked, kind, data in together(passed):
        number, direction = int(kind[:-1]), kind[-1]
        if number not in connections:
            connections[number] = Raw(server, greet=False)
        if direction == ">":
            connections[number].send_in_pieces(data, piece)
        else:
            answer = connections[number].receive(len(data))
            assert answer == data, f"the answer to {asked} on connection {number}"
    # Nothing is answered beyond it.
    assert [raw.answers() for raw in connections.values()] == [b""] * len(connections)


def test_there_is_a_transcript_of_each_release():
    assert {path.stem for path in TRANSCRIPTS} == {f"torch-{release}" for release in RELEASES}


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_has_every_request_of_its_release(path):
    sent = set()
    for passed in read_transcript(path).values():
        for _, kind, data in together(passed):
            # The first request of what was sent at once; VALIDATE is followed by another.
            if kind.endswith(">"):
                sent.add(data[0])
                if data[0] == 0:
                    sent.add(data[5] if len(data) > 5 else 0)
                if data.endswith(b"\x0c"):
                    sent.add(12)  # CANCEL_WAIT, behind the request that it ends
    assert sent >= KNOWN[path.stem.removeprefix("torch-")]


@pytest.mark.parametrize("piece", [1 << 20, 1], ids=["whole", "byte by byte"])
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_recorded_client_gets_the_answers_that_its_own_server_gave(ours, path, piece):
    for passed in read_transcript(path).values():
        replay(ours, passed, piece)
        ours.reset()


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_newest_of_pytorchs_servers_gives_those_answers_too(path):
    for passed in read_transcript(path).values():
        server = TorchServer()
        replay(server, passed, 1 << 20)
        server.end()
