#include "rendezvous/discovery/entry_search.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/base/overloaded.h"

using namespace elastic::discovery;
using elastic::Overloaded;

namespace {

constexpr std::int64_t kNow = 1'000'000;

const Entry kOthers{.incarnation = 77,
                    .birth_ms = 1'000,
                    .process = 6,
                    .leader = {"10.0.0.6", 4711},
                    .next_leaders = {{"10.0.0.7", 50}},
                    .written_ms = kNow - 60'000};

// Node 10.0.0.5, whose coordinator listens at port 4000 whenever it is to, and the file.
struct Node {
  explicit Node(EntrySearch::Settings settings = {})
      : discovery({.place = "file /f",
                   .process = 5,
                   .host = "node5",
                   .may_host = settings.may_host,
                   .refusal_is_proof = settings.refusal_is_proof}) {}

  // Everything that follows at once, in words.
  std::string told(const EntrySearch::Effects& effects) {
    std::string words;
    for (const EntrySearch::Effect& effect : effects) {
      words += std::visit(Overloaded{
                              [&](const EntrySearch::Read&) {
                                return told(discovery.read(
                                    file ? RegisterAnswer(*file) : std::unexpected(RegisterFailure{"gone"}), kNow));
                              },
                              [&](const EntrySearch::Write& e) {
                                written = e.desired;
                                if (loses) return std::string("write; ");
                                if (file == e.expected) file = e.desired;
                                return "write; " + told(discovery.written(*file, kNow));
                              },
                              [&](const EntrySearch::Open&) {
                                return "open; " + told(discovery.opened({"10.0.0.5", 4000}, kNow));
                              },
                              [](const EntrySearch::Hosts& e) { return "hosts " + e.where + ": " + e.reason + "; "; },
                              [](const EntrySearch::Close&) { return std::string("close; "); },
                              [&](const EntrySearch::Found& e) {
                                is_other_host = e.is_other_host;
                                return endpoint_of(e.place) + (e.is_own ? " own" : "") +
                                       (e.may_begin ? " begins" : "") + "; ";
                              },
                              [](const EntrySearch::NotFound& e) { return "none: " + e.failure.reason + "; "; },
                              [&](const Tell& e) {
                                if (e.level == Tell::Level::kWarning) warning = e.text;
                                return std::string();
                              },
                          },
                          effect);
    }
    return words;
  }
  std::string finds(const EntrySearch::Known& known = {}) { return told(discovery.find(known)); }
  std::string tried(Tried how) { return told(discovery.tried(how, kNow)); }
  // Tries what it finds, so often.
  void tries(int times, Tried how) {
    for (int i = 0; i < times; ++i) {
      CHECK(!finds().contains("open"));
      CHECK(tried(how).empty());
    }
  }

  EntrySearch discovery;
  std::optional<std::string> file = "";  // not set: it does not answer
  bool loses = false;                    // the answer to a write does not come
  std::string written;
  std::string warning;
  bool is_other_host = false;  // of the place that was found last
};

}  // namespace

TEST_CASE("where there is no entry the node begins the job, and is found by others and by itself") {
  Node node;
  CHECK(node.finds() ==
        "open; write; hosts 10.0.0.5:4000, in file /f: no node had begun it; 10.0.0.5:4000 own begins; ");
  CHECK(node.finds() == "10.0.0.5:4000 own begins; ");
  CHECK(read_entry(*node.file).value().incarnation == 0);
  CHECK(read_entry(*node.file).value().birth_ms == kNow);
}

TEST_CASE("of two that begin a job at once one closes what it has opened, and goes to the other") {
  Node node;
  node.loses = true;
  CHECK(node.finds() == "open; write; ");
  node.file = entry_text(kOthers);
  CHECK(node.told(node.discovery.written(*node.file, kNow)) == "close; 10.0.0.6:4711; ");
}

TEST_CASE("an entry whose writing was not answered is found again, or written again") {
  Node node;
  node.loses = true;
  CHECK(node.finds() == "open; write; ");
  CHECK(node.told(node.discovery.written(std::unexpected(RegisterFailure{"slow"}), kNow)) == "none: slow; ");
  SUBCASE("it was written") {
    node.file = node.written;
    CHECK(node.finds() == "hosts 10.0.0.5:4000, in file /f: no node had begun it; 10.0.0.5:4000 own begins; ");
  }
  SUBCASE("it was not") {
    node.loses = false;
    CHECK(node.finds() ==
          "open; write; hosts 10.0.0.5:4000, in file /f: no node had begun it; 10.0.0.5:4000 own begins; ");
  }
  SUBCASE("another node was first") {
    node.file = entry_text(kOthers);
    CHECK(node.finds() == "close; 10.0.0.6:4711; ");
  }
}

TEST_CASE("the leader of an entry is asked first, then in turn those who may lead next, and the leader again") {
  Node node;
  node.file = entry_text(kOthers);
  for (const char* place : {"10.0.0.6:4711; ", "10.0.0.7:50; ", "10.0.0.6:4711; "}) {
    CHECK(node.finds() == place);
    CHECK(node.is_other_host == (place == std::string("10.0.0.6:4711; ")));
    node.tried(Tried::kAnswered);
  }
  Entry later = kOthers;
  later.leader = {"10.0.0.7", 50};
  node.file = entry_text(later);
  CHECK(node.finds() == "10.0.0.7:50; ");
}

TEST_CASE("there is no need to wait before a place is asked that was not yet") {
  Node node;
  CHECK_FALSE(node.discovery.has_untried());
  node.file = entry_text(kOthers);
  CHECK(node.finds() == "10.0.0.6:4711; ");
  node.tried(Tried::kRefused);
  CHECK(node.discovery.has_untried());
  CHECK(node.finds() == "10.0.0.7:50; ");
  node.tried(Tried::kRefused);
  CHECK_FALSE(node.discovery.has_untried());
}

TEST_CASE("a leader on this node's own host is told from one on another host") {
  Node node;
  Entry here = kOthers;
  here.host = "node5";
  node.file = entry_text(here);
  CHECK(node.finds() == "10.0.0.6:4711; ");
  CHECK_FALSE(node.is_other_host);
}

TEST_CASE("a job may begin where the entry's process is the one that is to begin it, and nowhere else") {
  Node node;
  Entry begins = kOthers;
  begins.incarnation = 0;
  node.file = entry_text(begins);
  CHECK(node.finds() == "10.0.0.6:4711 begins; ");
}

TEST_CASE("an entry is replaced when every place of it refuses or is a stranger's") {
  Node node;
  node.file = entry_text(kOthers);
  node.tries(1, Tried::kRefused);
  node.tries(1, Tried::kStranger);
  CHECK(node.finds() ==
        "open; write; hosts 10.0.0.5:4000, in file /f: no process of the job listens any more at 10.0.0.6:4711 and 1 "
        "more, "
        "which file /f named 60.0 s ago; 10.0.0.5:4000 own begins; ");
}

TEST_CASE("an entry with a place that is silent, or was not tried, is never replaced") {
  for (const Tried how : {Tried::kSilent, Tried::kNot, Tried::kAnswered}) {
    Node node;
    node.file = entry_text(kOthers);
    node.tries(1, Tried::kRefused);
    node.tries(1, how);
    for (int i = 0; i < 5; ++i) {
      node.tries(1, Tried::kRefused);
      node.tries(1, how);
    }
  }
}

TEST_CASE("of silence the user is told once, and what to do in the last words") {
  Node node;
  node.file = entry_text(kOthers);
  CHECK(node.finds() == "10.0.0.6:4711; ");
  CHECK(node.discovery.explain("it timed out", kNow) ==
        "10.0.0.6:4711, which file /f named 60.0 s ago as a place of this job: it timed out; if the job is over, "
        "remove its entry there, or choose another --rdzv-id");
  node.tried(Tried::kSilent);
  CHECK(
      node.warning.starts_with("10.0.0.6:4711, which file /f named 60.0 s ago as a place of this job: it does not "
                               "answer"));
  // The place that refuses is not the one for which the node waits.
  CHECK(node.finds() == "10.0.0.7:50; ");
  CHECK(node.discovery.explain("Connection refused", kNow)
            .starts_with("10.0.0.6:4711, which file /f named 60.0 s ago as a place of this job: it does not answer;"));
  node.tried(Tried::kRefused);
  node.warning.clear();
  node.tries(4, Tried::kSilent);
  CHECK(node.warning.empty());
}

TEST_CASE("a node that has had a coordinator is not told to remove an entry, since it would not begin the job") {
  Node node;
  node.file = entry_text(kOthers);
  node.finds({.has_met_it = true});
  CHECK(node.discovery.explain("it timed out", kNow).ends_with("it timed out; if the job is over, end this node"));
}

TEST_CASE("a node of a running job begins none, whatever the file says") {
  Node node;
  CHECK(node.finds({.belongs = true}) == "none: the job's coordinator has ended, and no node hosts another one; ");
  CHECK(node.finds({.has_met_it = true}) == "none: the job's coordinator has ended, and no node hosts another one; ");
  node.file = entry_text(kOthers);
  node.tries(2, Tried::kRefused);
  CHECK(node.finds({.belongs = true}).starts_with("none: no process of the job listens any more at 10.0.0.6:4711"));
  // It asks again: the others may have elected somebody.
  CHECK(node.finds({.belongs = true}) == "10.0.0.6:4711; ");
}

TEST_CASE("who has begun a job that is over begins none in its place, and one that leads goes on") {
  Node node;
  node.finds();
  node.file = "";
  CHECK(node.finds({.belongs = true, .has_met_it = true}) == "10.0.0.5:4000 own begins; ");
  CHECK(node.file == "");
  // Before the first round it is as at the beginning.
  CHECK(node.finds({.has_met_it = true}) == "open; write; 10.0.0.5:4000 own begins; ");
}

TEST_CASE("a node that was on standby begins the job anew where its processes are gone") {
  Node node;
  node.file = entry_text(kOthers);
  node.tries(2, Tried::kRefused);
  CHECK(node.finds({.has_met_it = true}).starts_with("open; write; hosts"));
}

TEST_CASE("a node that may not host, or for which a refusal is no proof, replaces nothing") {
  Node guest({.may_host = false});
  CHECK(guest.finds() == "none: no node hosts the coordinator yet, and this one may not (is_host=0); ");
  Node careful({.refusal_is_proof = false});
  for (Node* node : {&guest, &careful}) {
    node->file = entry_text(kOthers);
    node->tries(2, Tried::kRefused);
    const std::string found = node->finds();
    CHECK(found.starts_with("none: no process of the job listens any more at 10.0.0.6:4711"));
    CHECK(found.contains("failover_evidence=none") == (node == &careful));
    // A coordinator may be there later.
    CHECK(node->finds() == "10.0.0.6:4711; ");
    // The node may end in this attempt: its last message is the same.
    CHECK(node->discovery.explain("Connection refused", kNow).contains("failover_evidence=none") == (node == &careful));
  }
}

TEST_CASE("without the file a node goes on with what it has read there") {
  Node node;
  node.file.reset();
  CHECK(node.finds() == "none: gone; ");
  node.file = entry_text(kOthers);
  CHECK(node.finds() == "10.0.0.6:4711; ");
  node.tried(Tried::kSilent);
  node.file.reset();
  CHECK(node.finds() == "10.0.0.7:50; ");
  node.file = "x";
  CHECK(node.finds() == "none: it holds something that elastic-run has not written; ");
}

namespace {

// The leader, at 10.0.0.5:4000, and the file.
struct Leader {
  std::string told(const EntryKeeper::Effects& effects) {
    std::string words;
    for (const EntryKeeper::Effect& effect : effects) {
      words += std::visit(
          Overloaded{
              [&](const EntryKeeper::Read&) {
                return told(keeper.read(file ? RegisterAnswer(*file) : std::unexpected(RegisterFailure{"gone"}), kNow));
              },
              [&](const EntryKeeper::Write& e) {
                if (file == e.expected) file = e.desired;
                return "write; " + told(keeper.written(*file));
              },
              [](const EntryKeeper::Gossip& e) { return "announce to " + endpoint_of(e.to) + "; "; },
              [](const EntryKeeper::Withdrawn&) { return std::string("withdrawn; "); },
              [](const Tell& e) { return std::string(e.event) + "; "; },
          },
          effect);
    }
    return words;
  }
  std::string looks() { return told(keeper.check_entry(own)); }
  std::string withdraws() { return told(keeper.withdraw(own.process)); }

  EntryKeeper keeper{"file /f"};
  Entry own{.incarnation = 77, .birth_ms = 1'000, .round = 2, .term = 4, .process = 5, .leader = {"10.0.0.5", 4000}};
  std::optional<std::string> file = "";
};

}  // namespace

TEST_CASE("an elected leader writes itself into the file, and again only where that says something else") {
  Leader leader;
  leader.file = entry_text(kOthers);
  CHECK(leader.looks() == "write; ");
  CHECK(read_entry(*leader.file).value().leader == leader.own.leader);
  CHECK(read_entry(*leader.file).value().written_ms == kNow);
  CHECK(leader.looks().empty());
  leader.own.next_leaders.push_back({"10.0.0.7", 50});
  CHECK(leader.looks() == "write; ");
  leader.file = "";
  CHECK(leader.looks() == "write; ");
}

TEST_CASE("a leader that does not reach the file says so once, and once that it does again") {
  Leader leader;
  leader.file.reset();
  CHECK(leader.looks() == "discovery_not_written; ");
  CHECK(leader.looks().empty());
  leader.file = "";
  CHECK(leader.looks() == "write; discovery_written; ");
  CHECK(leader.looks().empty());
}

TEST_CASE("the leader of another start of the job is told of this one") {
  Leader leader;
  Entry other = kOthers;
  other.incarnation = 78;
  leader.file = entry_text(other);
  CHECK(leader.looks() == "announce to 10.0.0.6:4711; write; ");
  other.round = 9;
  leader.file = entry_text(other);
  CHECK(leader.looks() == "announce to 10.0.0.6:4711; ");
}

TEST_CASE("at the end of its job a node removes its own entry, and nobody else's") {
  Leader leader;
  CHECK(leader.looks() == "write; ");
  SUBCASE("its own") {
    CHECK(leader.withdraws() == "write; withdrawn; ");
    CHECK(leader.file == "");
  }
  SUBCASE("another's") {
    leader.file = entry_text(kOthers);
    CHECK(leader.withdraws() == "withdrawn; ");
    CHECK(leader.file == entry_text(kOthers));
  }
  SUBCASE("it is not there any more") {
    leader.file = "";
    CHECK(leader.withdraws() == "withdrawn; ");
  }
  SUBCASE("the file does not answer") {
    leader.file.reset();
    CHECK(leader.withdraws() == "discovery_entry_stays; withdrawn; ");
  }
}
