"""Names are the field's: what tests/structure/words.py lists does not come back, and what is left of it only shrinks."""

import pytest
import words


def test_no_name_has_an_old_word_that_it_may_not_have():
    assert words.check(words.ROOT, words.LEFT) == []


@pytest.mark.parametrize("text, left, found", [
    ("int door_port = 0;", {}, ["rendezvous/agent/a.cpp: door_port: the word for door is peer_port (1 names in "
                                "rendezvous/agent, 0 are left)"]),
    ("int door_port = 0;", {("door", "rendezvous/agent"): 1}, []),
    ("int port = 0;", {("door", "rendezvous/agent"): 1},
     ["tests/structure/words.py: LEFT['door', 'rendezvous/agent'] is 0 now"]),
    ('// the door of a node\nconst char* const kPort = "door";', {}, []),
    ("bool kIsKeptOut = false;", {}, ["rendezvous/agent/a.cpp: kIsKeptOut: the word for kept_out is quarantined (1 names in "
                                      "rendezvous/agent, 0 are left)"]),
    ("int indoor = 0;", {}, []),
])
def test_names_texts_and_numbers_are_told_apart(tmp_path, text, left, found):
    (tmp_path / "rendezvous/agent").mkdir(parents=True)
    (tmp_path / "rendezvous/agent/a.cpp").write_text(text)
    assert words.check(tmp_path, left) == found


def test_no_function_of_a_header_looks_tells_takes_or_says_without_an_object():
    assert words.vague(words.ROOT) == []


@pytest.mark.parametrize("text, found", [
    ("class A {\n  void look();\n};", ["src/a.h: look"]),
    ("class A {\n  std::optional<std::vector<int>> take(Bytes bytes);\n};", ["src/a.h: take"]),
    ("class A {\n  void look_for_files();\n  bool mistakes(int a);\n  int look_ms() { return clock_.look(); }\n};", []),
])
def test_a_vague_function_is_found(tmp_path, text, found):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.h").write_text(text)
    assert words.vague(tmp_path) == found
