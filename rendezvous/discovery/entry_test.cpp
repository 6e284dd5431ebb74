#include "rendezvous/discovery/entry.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "rendezvous/discovery/limits.h"
#include "src/base/text.h"

using namespace elastic;
using namespace elastic::discovery;

namespace {

const Entry kThere{.incarnation = 77,
                   .birth_ms = 1'000,
                   .round = 3,
                   .term = 5,
                   .process = 9,
                   .host = "node5",
                   .leader = {"10.0.0.5", 4711},
                   .next_leaders = {{"10.0.0.6", 50}, {"fd00::7", 60}},
                   .written_ms = 2'000};

constexpr const char* kThereText =
    R"({"incarnation":"0x4d","birth_ms":1000,"round":3,"term":5,"process":"0x9","host":"node5",)"
    R"("leader":{"address":"10.0.0.5","port":4711},)"
    R"("next_leaders":[{"address":"10.0.0.6","port":50},{"address":"fd00::7","port":60}],"written_ms":2000})";

Entry with(Entry entry, auto change) {
  change(entry);
  return entry;
}

}  // namespace

TEST_CASE("an entry is read as it was written") {
  CHECK(entry_text(kThere) == kThereText);
  CHECK(read_entry(kThereText).value() == kThere);
  const Entry begins{.birth_ms = 1, .process = 1, .leader = {"host0", 1}};
  CHECK(read_entry(entry_text(begins)).value() == begins);
  CHECK(endpoint_of({"fd00::5", 1}) == "[fd00::5]:1");
  const std::string good = kThereText;
  const auto broken = [&](const std::string& part, const std::string& by) {
    std::string text = good;
    return text.replace(text.find(part), part.size(), by);
  };
  std::string many;
  for (int i = 0; i < 8; ++i) many += R"({"address":"a","port":1},)";
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("[]"), std::string("{}"), std::string("import os\n"),
        broken("4711", "0"), broken("4711", "65536"), broken("\"10.0.0.5\"", "\"\""), broken("\"fd00::7\"", "\"\""),
        broken(R"("term":5)", R"("term":0)"), broken(R"("process")", R"("host")"), broken("2000", "-1"),
        broken(R"({"address":"10.0.0.6","port":50},)", many)}) {
    CAPTURE(text);
    CHECK(!read_entry(text));
  }
}

TEST_CASE("a file has the entries of several jobs") {
  const std::string odd = "j\xff\"\n";
  const std::string other = entry_text({.process = 2, .leader = {"::1", 5}});
  const std::string one = file_with_entry("", "job", kThereText).value();
  CHECK(one == format("{{\"version\":1,\"jobs\":{{\"job\":{}}}}}\n", kThereText));
  const std::string two = file_with_entry(one, odd, other).value();
  CHECK(entry_in_file(two, "job").value() == kThereText);
  CHECK(entry_in_file(two, odd).value() == other);
  CHECK(entry_in_file(two, "third").value().empty());
  CHECK(entry_in_file("", "job").value().empty());
  CHECK(file_with_entry(two, odd, "").value() == one);
  CHECK(file_with_entry(one, "job", "").value().empty());
}

TEST_CASE("what elastic-run has not written is no file of entries, and is named") {
  for (const char* text : {"x", "[]", "{}", "7", "import os\n", R"({"jobs":{}})"}) {
    CAPTURE(text);
    CHECK(entry_in_file(text, "job").error().reason == "it holds something that elastic-run has not written");
    CHECK(!file_with_entry(text, "job", kThereText));
  }
  CHECK(entry_in_file(R"({"version":1})", "job").error().reason == "it names no jobs");
  CHECK(entry_in_file(R"({"version":3,"jobs":{}})", "job").error().reason ==
        "it was written by another version of elastic-run");
  CHECK(entry_in_file(R"({"version":1,"jobs":{"job":{"term":1}}})", "job")
            .error()
            .reason.starts_with("its entry for this job cannot be read: incarnation is missing"));
}

TEST_CASE("a file has no more jobs than it may") {
  std::string file;
  for (std::size_t i = 0; i < limits::kEntriesPerFile; ++i) {
    file = file_with_entry(file, format("job{}", i), entry_text({.process = 1, .leader = {"a", 1}})).value();
  }
  CHECK(file_with_entry(file, "job0", kThereText));
  CHECK(file_with_entry(file, "one more", kThereText).error().reason ==
        "it holds 256 jobs already; remove those that are over, or name another file");
}

TEST_CASE("the leader writes its entry where none is, over its own, and over one of an earlier term of its job") {
  const auto writes = [](const std::optional<Entry>& there) { return keep_entry(kThere, there).writes; };
  CHECK(writes({}));
  CHECK_FALSE(writes(kThere));
  CHECK_FALSE(writes(with(kThere, [](Entry& entry) { entry.written_ms = 7; })));
  CHECK(writes(with(kThere, [](Entry& entry) { entry.next_leaders.pop_back(); })));
  CHECK(writes(with(kThere, [](Entry& entry) { entry.incarnation = 0; })));
  CHECK(writes(with(kThere, [](Entry& entry) { entry.term = 4; })));
  CHECK_FALSE(writes(with(kThere, [](Entry& entry) { entry.term = 6; })));  // of a later leader in this process
  const Entry of_other = with(kThere, [](Entry& entry) { entry.process = 10; });
  CHECK(writes(of_other));
  CHECK(writes(with(of_other, [](Entry& entry) { entry.term = 4; })));
  CHECK_FALSE(writes(with(of_other, [](Entry& entry) { entry.term = 6; })));
  CHECK_FALSE(keep_entry(kThere, of_other).gossips);
}

TEST_CASE("the leader of another start of the job hears of this one, and its entry is replaced where it gives way") {
  const Entry other = with(kThere, [](Entry& entry) {
    entry.process = 10;
    entry.incarnation = 78;
  });
  const auto keeping = [&](auto change) { return keep_entry(kThere, with(other, change)); };
  CHECK(keeping([](Entry& entry) { entry.round = 2; }).writes);
  CHECK(keeping([](Entry& entry) { entry.round.reset(); }).writes);
  CHECK(keeping([](Entry& entry) { entry.birth_ms = 1'001; }).writes);
  CHECK_FALSE(keeping([](Entry& entry) { entry.birth_ms = 999; }).writes);
  CHECK_FALSE(keeping([](Entry& entry) { entry.round = 4; }).writes);
  for (const std::uint32_t round : {2U, 4U}) {
    CHECK(keeping([round](Entry& entry) { entry.round = round; }).gossips);
  }
}

TEST_CASE("an entry names the address that the user gave, or the first that other hosts may reach") {
  CHECK(entry_address("host0", {"10.0.0.5"}) == "host0");
  CHECK(entry_address("", {"127.0.0.1", "169.254.1.1", "10.0.0.5", "10.0.0.6"}) == "10.0.0.5");
  CHECK(entry_address("", {"::1", "fe80::1", "fd00::5", "10.0.0.5"}) == "10.0.0.5");
  CHECK(entry_address("", {"::1", "FEB0::1", "fd00::5"}) == "fd00::5");
  CHECK(entry_address("", {}) == "127.0.0.1");
}
