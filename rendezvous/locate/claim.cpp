#include "rendezvous/locate/claim.h"

#include <algorithm>

#include "rendezvous/protocol/lease.h"
#include "src/base/address.h"
#include "src/base/json_archive.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::locate {
namespace {

constexpr std::int64_t kVersion = 3;
constexpr std::size_t kLevels = 4;

// The job's name as a JSON member's, which cannot have all bytes; it is not shortened.
std::string job_key(const std::string& job) { return printable(job, 4 * limits::kAgentNameBytes); }

std::unexpected<Error> no_claim(std::string reason) { return fail("", std::move(reason)); }

// Parses a JSON object of a version that this program knows.
Result<Json> read_object(std::string_view text) {
  if (!json_over_bounds(text, kLevels, limits::kClaimsPerFile).empty()) {
    return no_claim("it holds something that elastic-run has not written");
  }
  auto json = Json::parse(text, "claim");
  if (!json || json->as_object() == nullptr || json->find("version") == nullptr) {
    return no_claim("it holds something that elastic-run has not written");
  }
  const auto version = json->find("version")->as_integer();
  if (version != kVersion) return no_claim("it was written by another version of elastic-run");
  return json;
}

// Without a version: that of a file is its own.
Result<Claim> claim_of(const Json& json) {
  Claim claim;
  if (const std::string wrong = read_json(json, claim, JsonForm::kForgiving); !wrong.empty()) {
    return no_claim(format("it is no claim: {}", wrong));
  }
  if (claim.address.empty()) return no_claim("it is no claim: address is empty");
  return claim;
}

// The jobs of a file; an empty file has none.
Result<Json> jobs_of(std::string_view file) {
  if (trim(file).empty()) return Json::object();
  const auto whole = read_object(file);
  if (!whole) return std::unexpected(whole.error());
  const Json* jobs = whole->find("jobs");
  if (jobs == nullptr || jobs->as_object() == nullptr) return no_claim("it names no jobs");
  return *jobs;
}

bool is_link_local(std::string_view address) {
  if (address.starts_with("169.254.")) return true;
  const std::string start = lower(address.substr(0, 3));
  return start == "fe8" || start == "fe9" || start == "fea" || start == "feb";
}

}  // namespace

std::string claim_endpoint(const Claim& claim) { return with_port(claim.address, claim.port); }

bool same_holder(const Claim& one, const Claim& other) {
  return one.address == other.address && one.port == other.port && one.agent == other.agent;
}

std::string claim_text(const Claim& claim) {
  Json out = Json::object();
  out.set("version", kVersion);
  JsonWriter writer(out, JsonForm::kForgiving);
  Claim::fields(writer, claim);
  return out.dump();
}

Result<Claim> read_claim(std::string_view text) {
  const auto json = read_object(text);
  if (!json) return std::unexpected(json.error());
  return claim_of(*json);
}

Result<std::string> claim_in_file(std::string_view file, const std::string& job) {
  const auto jobs = jobs_of(file);
  if (!jobs) return std::unexpected(jobs.error());
  const Json* fields = jobs->find(job_key(job));
  if (fields == nullptr) return std::string();
  const auto claim = claim_of(*fields);
  if (!claim) return std::unexpected(claim.error());
  return claim_text(*claim);
}

Result<std::string> file_with_claim(std::string_view file, const std::string& job, const std::string& claim) {
  const auto before = jobs_of(file);
  if (!before) return std::unexpected(before.error());
  Json jobs = Json::object();
  for (const auto& [name, fields] : *before->as_object()) {
    if (name != job_key(job)) jobs.set(name, fields);
  }
  if (!claim.empty()) {
    if (jobs.as_object()->size() >= limits::kClaimsPerFile) {
      return no_claim(
          format("it holds {} jobs already; remove those that are over, or name another file", limits::kClaimsPerFile));
    }
    const auto read = read_claim(claim);
    if (!read) return std::unexpected(read.error());
    jobs.set(job_key(job), write_json(*read, JsonForm::kForgiving));
  }
  if (jobs.as_object()->empty()) return std::string();
  Json whole = Json::object();
  whole.set("version", kVersion);
  whole.set("jobs", std::move(jobs));
  return whole.dump() + "\n";
}

void ClaimTrials::tried(const Claim& claim, Tried how) {
  claim_ = claim;
  last_ = how;
}

Tried ClaimTrials::last(const Claim& claim) const { return claim == claim_ ? last_ : Tried::kNot; }

std::int64_t ClaimSight::seen(const Claim& claim, std::int64_t now_ms) {
  if (claim_ != claim) {
    claim_ = claim;
    since_ms_ = now_ms;
  }
  return now_ms - since_ms_;
}

namespace {

// Why the last attempt failed, as a clause; empty if it did not fail.
const char* failure_of(Tried tried) {
  switch (tried) {
    case Tried::kNot:
    case Tried::kAnswered: return "";
    case Tried::kRefused: return "no process listens there";
    case Tried::kStranger: return "the server there is not a coordinator";
    case Tried::kSilent: return "it does not answer";
  }
  return "";
}

}  // namespace

ClaimDecision decide_claim(const ClaimView& view) {
  if (!view.there) {
    if (!view.may_host) {
      return {ClaimStep::kWait, "no node hosts the coordinator yet, and this one may not (is_host=0)"};
    }
    if (view.hosts) return {ClaimStep::kClaim, "its own claim was removed"};
    if (view.belongs) return {ClaimStep::kWait, "the job's coordinator has ended, and no node hosts another one"};
    return {ClaimStep::kClaim, "no node had claimed it"};
  }
  const std::string where = claim_endpoint(*view.there);
  if (view.is_own) return {ClaimStep::kConnect, "it is this node's own"};
  const std::string failure = failure_of(view.tried);
  const std::int64_t good_for_ms = protocol::LeaseTimes{view.there->loss_timeout_ms}.over_ms();
  if (view.may_host && view.unchanged_ms >= good_for_ms) {
    return {ClaimStep::kClaim, format("{} has not renewed its claim for {} ms{}", where, view.unchanged_ms,
                                      failure.empty() ? "" : format(", and {}", failure))};
  }
  if (!failure.empty()) {
    const std::string holder = format("{} holds the claim, but {}", where, failure);
    if (!view.may_host) return {ClaimStep::kWait, holder};
    return {ClaimStep::kWait,
            format("{}; another node takes over once the claim has not been renewed for {} ms", holder, good_for_ms)};
  }
  return {ClaimStep::kConnect, "it is there"};
}

std::string claim_address(const std::string& given, const std::vector<std::string>& own) {
  if (!given.empty()) return given;
  for (const bool v6 : {false, true}) {
    const auto found = std::ranges::find_if(own, [v6](const std::string& address) {
      return address.contains(':') == v6 && !is_loopback(address) && !is_link_local(address);
    });
    if (found != own.end()) return *found;
  }
  return "127.0.0.1";
}

}  // namespace elastic::locate
