"""Each message is described once: its list of fields (src/base/fields.h) stands in its struct and names every member,
and no other file of the program knows the fields of a message of the agent protocol."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTOCOL = ["rendezvous/protocol/message_parts.h", "rendezvous/protocol/messages.h"]
HEADERS = PROTOCOL + ["rendezvous/protocol/codec.h", "rendezvous/trace/recording.h", "health/messages/messages.h",
                      "health/tuning/loader_word.h", "health/gpu/messages.h",
                      "health/probe/check_settings.h", "health/probe/probe_process.h"]
# Members that are in no list, since each node sets them for itself.
OWN = {"JobResult": {"is_unhealthy"}, "CheckSettings": {"page"}}

STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
LIST = re.compile(r"^  static void fields\([^)]*\) \{(?:([^\n]*)\}|\n(.*?)^  \})$", re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r"^  (?!static|using|enum|return|bool operator)[\w:<>, ]+? (\w+)(?: = .*| *\{\})?;", re.MULTILINE)
NAMED = re.compile(r'"(\w+)", v\.\w+')


def structs_of(text):
    """{name: (members, text of the list)} of the structs that have a list."""
    found = {}
    for name, body in STRUCT.findall(re.sub(r"\s*//.*", "", text)):
        fields = LIST.search(body)
        if fields:
            members = set(MEMBER.findall(body[:fields.start()] + body[fields.end():]))
            found[name] = members, fields.group(1) or fields.group(2) or ""
    return found


def not_listed(text):
    """Members that a list does not name, as "Struct.member"."""
    return sorted(f"{name}.{member}" for name, (members, fields) in structs_of(text).items() for member in members
                  if member not in OWN.get(name, ()) and not re.search(rf"\bv\.{member}\b", fields))


def variants_of(text):
    """The messages of AgentMessage and CoordinatorMessage."""
    return {name for kind in ("Agent", "Coordinator")
            for name in re.findall(r"\w+", re.search(rf"struct {kind}Message\s+: std::variant<(.*?)> {{", text,
                                                     re.DOTALL).group(1))}


def describers(name, fields, files):
    """The files of {path: text} that have a list of the struct, or quote all names of its fields if these are many."""
    names = set(NAMED.findall(fields))
    has_list = re.compile(rf"\bfields\([^)]*\b{name}\b")
    return [path for path, text in files.items() if has_list.search(text)
            or len(names) > 3 and names <= set(re.findall(r'"(\w+)"', text))]


def test_every_member_of_a_message_is_in_its_list():
    for path in HEADERS:
        text = (ROOT / path).read_text()
        assert structs_of(text), path
        assert not not_listed(text), path
    parts = (ROOT / PROTOCOL[0]).read_text()
    assert not_listed(parts.replace("  int signal = 0;", "  int signal = 0;\n  std::optional<int> core = {};")) == [
        "JobResult.core"]
    assert not_listed(parts.replace('    io("membership", v.membership);\n', "")) == ["AgentFacts.membership"]


def test_each_message_of_the_agent_protocol_names_its_fields_in_one_product_file():
    texts = [(ROOT / path).read_text() for path in PROTOCOL]
    described = {name: fields for text in texts for name, (_, fields) in structs_of(text).items()}
    assert variants_of(texts[1]) <= set(described)
    files = {str(path.relative_to(ROOT)): path.read_text() for top in ("cli", "rendezvous", "health", "src")
             for path in sorted((ROOT / top).rglob("*")) if path.suffix in (".h", ".cpp")
             and "test" not in path.stem and str(path.relative_to(ROOT)) not in PROTOCOL}
    assert len(files) > 300
    for name, fields in described.items():
        assert not describers(name, fields, files), name
        assert describers(name, fields, {"x.cpp": f"void fields(auto& io, Is<{name}> auto& v) {{}}"})
    quoted = " ".join(f'"{name}"' for name in NAMED.findall(described["NodePlace"]))
    assert describers("NodePlace", described["NodePlace"], {"x.cpp": quoted}) == ["x.cpp"]
