#include "health/stacks/document.h"

#include <doctest/doctest.h>

#include <string>

using namespace elastic;
using namespace elastic::stacks;

namespace {

StackGroup group(StackOf of, const std::string& function, int first_rank, int count) {
  StackGroup made{.of = of, .frames = {{function, "train.py", 7}, {"<module>", "train.py", 0}}, .waits = {"sleeping"}};
  for (int rank = first_rank; rank < first_rank + count; ++rank) {
    made.members.push_back({.rank = rank, .pid = 100 + rank, .thread = 200 + rank, .node = "n"});
  }
  return made;
}

StacksDocument document() {
  StacksDocument made{.run_id = "j"};
  made.nodes = {{"n"}, {"m", "it did not answer within 5 s"}};
  made.all.groups = {group(StackOf::kWorker, "load", 9, 1), group(StackOf::kWorker, "wait", 0, 9),
                     group(StackOf::kThread, "beat", 3, 1)};
  made.all.groups[1].is_cut = true;
  made.all.groups[2].torn = 1;
  return made;
}

}  // namespace

TEST_CASE("the page has the odd stack first, and says which nodes are missing") {
  CHECK(page_of(document()) ==
        "job j: 10 workers on 1 node, 2 different stacks, the rarest first\n"
        "\n"
        "rank 9 (process 109 on n): sleeping\n"
        "    load  train.py:7\n"
        "    <module>  train.py\n"
        "\n"
        "ranks 0-8 (9 processes): sleeping\n"
        "    wait  train.py:7\n"
        "    <module>  train.py\n"
        "    ... and older calls\n"
        "\n"
        "Their other threads:\n"
        "\n"
        "rank 3 (process 103, thread 203 on n): sleeping\n"
        "    beat  train.py:7\n"
        "    <module>  train.py\n"
        "    (of 1 of them this may be wrong, since it ran on while it was read)\n"
        "\n"
        "node m: it did not answer within 5 s\n");
}

TEST_CASE("the page of one process names it, and what could not be read") {
  StacksDocument one;
  one.all.groups = {{.problem = "it may not be read", .members = {{.pid = 7, .thread = 7}}, .waits = {"stopped"}}};
  one.all.left_out = 2;
  one.all.more_children = 3;
  one.all.more_members = 1;
  one.notes = {"No right."};
  CHECK(page_of(one) ==
        "process 7: stopped\n"
        "    no stack of Python: it may not be read\n"
        "\n"
        "2 more stacks left out for lack of space.\n"
        "\n"
        "1 more thread with these stacks left out for lack of space.\n"
        "\n"
        "3 more processes that they have started were not looked at.\n"
        "\n"
        "No right.\n");
}

TEST_CASE("the document is read as it was written, and others are refused") {
  const auto read = read_document(json_of(document()).dump());
  REQUIRE(read);
  CHECK(page_of(*read) == page_of(document()));
  for (const char* other : {"", "{}", "[]", "{\"run_id\":\"j\"}"}) CHECK(!read_document(other));
}
