#include "rendezvous/discovery/entry.h"

#include <algorithm>

#include "rendezvous/discovery/duplicate_job.h"
#include "rendezvous/discovery/limits.h"
#include "src/base/address.h"
#include "src/base/json_archive.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::discovery {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kLevels = 5;

// The job's name as a key in JSON, which cannot have all bytes; it is not shortened.
std::string job_key(const std::string& job) { return printable(job, 4 * limits::kAgentNameBytes); }

std::unexpected<Error> no_entry(std::string reason) { return fail("", std::move(reason)); }

Result<Json> read_object(std::string_view text) {
  if (!json_over_bounds(text, kLevels, limits::kEntriesPerFile).empty()) {
    return no_entry("it holds something that elastic-run has not written");
  }
  auto json = Json::parse(text, "entry");
  if (!json || json->as_object() == nullptr) return no_entry("it holds something that elastic-run has not written");
  return json;
}

Result<Entry> entry_of(const Json& json) {
  Entry entry;
  std::string wrong = read_json(json, entry, JsonForm::kExact);
  const auto is_nowhere = [](const Entry::Place& place) {
    return place.address.empty() || place.address.size() > limits::kAgentNameBytes;
  };
  if (wrong.empty() && (is_nowhere(entry.leader) || std::ranges::any_of(entry.next_leaders, is_nowhere))) {
    wrong = "an address is empty, or too long";
  }
  if (wrong.empty() && entry.next_leaders.size() > limits::kNextLeaders) wrong = "it names too many next leaders";
  if (!wrong.empty()) return no_entry(format("its entry for this job cannot be read: {}", wrong));
  return entry;
}

// The jobs of a file; an empty file has none.
Result<Json> jobs_of(std::string_view file) {
  if (trim(file).empty()) return Json::object();
  const auto whole = read_object(file);
  if (!whole) return std::unexpected(whole.error());
  if (whole->find("version") == nullptr) return no_entry("it holds something that elastic-run has not written");
  if (whole->find("version")->as_integer() != kVersion) {
    return no_entry("it was written by another version of elastic-run");
  }
  const Json* jobs = whole->find("jobs");
  if (jobs == nullptr || jobs->as_object() == nullptr) return no_entry("it names no jobs");
  return *jobs;
}

bool is_link_local(std::string_view address) {
  if (address.starts_with("169.254.")) return true;
  const std::string start = lower(address.substr(0, 3));
  return start == "fe8" || start == "fe9" || start == "fea" || start == "feb";
}

DuplicateJob duplicate_job(const Entry& entry) { return {entry.incarnation, entry.birth_ms, entry.round}; }

bool say_the_same(Entry one, const Entry& other) {
  one.written_ms = other.written_ms;
  return one == other;
}

}  // namespace

std::string endpoint_of(const Entry::Place& place) { return with_port(place.address, place.port); }

std::string entry_text(const Entry& entry) { return write_json(entry, JsonForm::kExact).dump(); }

Result<Entry> read_entry(std::string_view text) {
  const auto json = read_object(text);
  if (!json) return std::unexpected(json.error());
  return entry_of(*json);
}

Result<std::string> entry_in_file(std::string_view file, const std::string& job) {
  const auto jobs = jobs_of(file);
  if (!jobs) return std::unexpected(jobs.error());
  const Json* fields = jobs->find(job_key(job));
  if (fields == nullptr) return std::string();
  const auto entry = entry_of(*fields);
  if (!entry) return std::unexpected(entry.error());
  return entry_text(*entry);
}

Result<std::string> file_with_entry(std::string_view file, const std::string& job, const std::string& entry) {
  const auto before = jobs_of(file);
  if (!before) return std::unexpected(before.error());
  Json jobs = Json::object();
  for (const auto& [name, fields] : *before->as_object()) {
    if (name != job_key(job)) jobs.set(name, fields);
  }
  if (!entry.empty()) {
    if (jobs.as_object()->size() >= limits::kEntriesPerFile) {
      return no_entry(format("it holds {} jobs already; remove those that are over, or name another file",
                             limits::kEntriesPerFile));
    }
    const auto read = read_entry(entry);
    if (!read) return std::unexpected(read.error());
    jobs.set(job_key(job), write_json(*read, JsonForm::kExact));
  }
  if (jobs.as_object()->empty()) return std::string();
  Json whole = Json::object();
  whole.set("version", kVersion);
  whole.set("jobs", std::move(jobs));
  return whole.dump() + "\n";
}

Keeping keep_entry(const Entry& own, const std::optional<Entry>& there) {
  if (!there) return {.writes = true};
  if (say_the_same(own, *there)) return {};
  if (there->incarnation == own.incarnation) return {.writes = there->term <= own.term};
  if (there->process == own.process) return {.writes = true};
  return {.writes = judge_duplicate_job(duplicate_job(own), duplicate_job(*there)) == Duplicate::kGoesOn,
          .gossips = true};
}

std::string entry_address(const std::string& given, const std::vector<std::string>& own) {
  if (!given.empty()) return given;
  for (const bool v6 : {false, true}) {
    const auto found = std::ranges::find_if(own, [v6](const std::string& address) {
      return address.contains(':') == v6 && !is_loopback(address) && !is_link_local(address);
    });
    if (found != own.end()) return *found;
  }
  return "127.0.0.1";
}

}  // namespace elastic::discovery
