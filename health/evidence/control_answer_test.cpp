#include "health/evidence/control_answer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "src/base/text.h"

namespace elastic::evidence {
namespace {

constexpr std::string_view kDump =
    R"({"version": "2.10", "entries": [{"record_id": 0, "process_group": ["0", "default_pg"],
        "collective_seq_id": 7, "profiling_name": "gloo:all_reduce", "retired": false, "is_p2p": false}]})";

// As torch 2.15.0 answers.
std::string answer_of(std::string_view status, std::string_view body) {
  return format("HTTP/1.1 {}\r\nConnection: close\r\nContent-Length: {}\r\nContent-Type: application/json\r\n\r\n{}",
                status, body.size(), body);
}

// What is read of it in pieces of so many bytes.
ControlAnswer::Dump read(std::string_view text, std::size_t piece) {
  ControlAnswer answer;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    if (auto result = answer.feed(text.substr(0, piece))) return std::move(*result);
  }
  return answer.closed();
}

// A dump with one group.
FlightFacts facts(std::string_view backend, int number) {
  FlightFacts dump;
  FlightGroup& group = dump.groups.emplace_back();
  group.name = "0";
  group.enqueued = number;
  group.newest.emplace().backend = backend;
  dump.entries = 1;
  return dump;
}

}  // namespace

TEST_CASE("a control server is asked for each of its recorders by a request that ends the connection") {
  CHECK(control_request("fr_trace_json") ==
        "POST /handler/fr_trace_json HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

TEST_CASE("the dump that a control server answers is read, in any pieces, with a length or up to the end") {
  const std::string with_length = answer_of("200 OK", kDump);
  const std::string to_the_end = format("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", kDump);
  for (const std::string& text : {with_length, to_the_end}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, text.size()}) {
      const auto dump = read(text, piece);
      REQUIRE(dump.has_value());
      CHECK(dump->value().groups.at(0).enqueued == 7);
    }
  }
}

TEST_CASE("an answer of a control server that is no dump is refused with the reason") {
  const auto why = [](std::string_view text) {
    const auto dump = read(text, text.size());
    return dump ? "a dump" : dump.error().reason;
  };
  CHECK(why(answer_of("500 Internal Server Error", kDump)) == "its status is 500");
  CHECK(why("SSH-2.0-OpenSSH_9.2\r\n").starts_with("its answer is not HTTP/1.1"));
  CHECK(why(answer_of("200 OK", kDump).substr(0, 150)).contains("stream ended at an unexpected time"));
  CHECK(why(answer_of("200 OK", "{}")) == "it has neither a version nor entries");
  CHECK(!why(answer_of("200 OK", "\x80\x02cos\nsystem\nX\x02\x00\x00\x00idtR.")).empty());
  const std::string endless = "HTTP/1.1 200 OK\r\n\r\n" + std::string(kFlightJsonBytes + 1, ' ');
  CHECK(why(endless) == format("its answer is longer than {} bytes", kFlightJsonBytes));
}

TEST_CASE("a control server that has no such handler has no dump, and is not wrong") {
  const std::string text = answer_of("404 Not Found", "Handler fr_trace_json not found");
  const auto dump = read(text, text.size());
  REQUIRE(dump.has_value());
  CHECK(!*dump);
}

TEST_CASE("two recorders of a process are one with the groups of both, each once") {
  const FlightFacts both = of_both_recorders(facts("nccl", 7), facts("gloo", 2));
  REQUIRE(both.groups.size() == 2);
  CHECK(both.groups[0].enqueued == 7);
  CHECK(both.groups[1].enqueued == 2);
  CHECK(both.entries == 2);
  CHECK(of_both_recorders(facts("nccl", 7), facts("nccl", 2)).groups.size() == 1);
}

TEST_CASE("what one of two recorders lacks, both lack, and of groups no more are kept than of one") {
  FlightFacts torn = facts("gloo", 2);
  torn.oldest_record = 3;
  torn.entries_left_out = 4;
  torn.is_cut = true;
  FlightFacts both = of_both_recorders(facts("nccl", 7), torn);
  CHECK(both.oldest_record == 3);
  CHECK(both.entries_left_out == 4);
  CHECK(both.is_cut);
  CHECK(!both.has_more_groups);
  FlightFacts many;
  many.groups.resize(kFlightGroups);
  both = of_both_recorders(many, facts("gloo", 2));
  CHECK(both.groups.size() == kFlightGroups);
  CHECK(both.has_more_groups);
}

}  // namespace elastic::evidence
