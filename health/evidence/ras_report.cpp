#include "health/evidence/ras_report.h"

#include <algorithm>
#include <utility>

#include "src/base/json.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

constexpr std::string_view kReport = "NCCL's RAS report";

std::int64_t integer_in(const Json& object, std::string_view name, std::int64_t otherwise = 0) {
  const Json* member = object.find(name);
  return member == nullptr ? otherwise : member->as_integer().value_or(otherwise);
}

bool flag_in(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  return member != nullptr && member->as_bool().value_or(false);
}

std::string text_in(const Json& object, std::string_view name) {
  return printable(object.text_or_empty(name), kRasTextBytes);
}

const Json::Array& list_in(const Json& object, std::string_view name) {
  static const Json::Array kNone;
  const Json* member = object.find(name);
  return member == nullptr || member->as_array() == nullptr ? kNone : *member->as_array();
}

RasProcess process_in(const Json& object) { return {text_in(object, "host"), integer_in(object, "pid", -1)}; }

std::optional<int> rank_in(const Json& object) {
  const std::int64_t rank = integer_in(object, "rank", -1);
  return rank >= 0 && rank < INT32_MAX ? std::optional(static_cast<int>(rank)) : std::nullopt;
}

std::optional<RasRank> read_rank(const Json& object) {
  const auto number = rank_in(object);
  const Json* counts = object.find("collective_counts");
  if (!number || counts == nullptr) return {};
  RasRank rank{.rank = *number, .process = process_in(object)};
  for (std::size_t i = 0; i < kRasCollectives.size(); ++i) rank.launched[i] = integer_in(*counts, kRasCollectives[i]);
  if (const Json* status = object.find("status")) {
    rank.init_state = integer_in(*status, "init_state");
    rank.async_error = integer_in(*status, "async_error");
    rank.is_ending =
        flag_in(*status, "finalize_called") || flag_in(*status, "destroy_flag") || flag_in(*status, "abort_flag");
  }
  return rank;
}

std::optional<RasMissingRank> read_missing(const Json& object) {
  const auto number = rank_in(object);
  if (!number) return {};
  RasMissingRank rank{.rank = *number, .process = process_in(object)};
  if (const Json* status = object.find("status")) {
    rank.is_silent = flag_in(*status, "unresponsive");
    rank.is_dead = flag_in(*status, "considered_dead");
  }
  return rank;
}

// Appends what read() makes of each item, as long as there is room for more ranks.
template <class Rank, class Read>
void read_ranks(const Json::Array& items, Read read, std::vector<Rank>& ranks, std::size_t& room,
                std::size_t& left_out) {
  for (const Json& item : items) {
    auto rank = read(item);
    if (!rank || room == 0) {
      ++left_out;
      continue;
    }
    ranks.push_back(std::move(*rank));
    --room;
  }
}

Result<RasReport> read_json_report(std::string_view text) {
  const std::string what = format("cannot read {}", kReport);
  if (std::string wrong = json_over_bounds(text, kRasJsonLevels, kRasJsonMembers); !wrong.empty()) {
    return fail(what, std::move(wrong));
  }
  const auto json = Json::parse(text, std::string(kReport));
  if (!json) return std::unexpected(json.error());
  const Json* communicators = json->find("communicators");
  if (communicators == nullptr || communicators->as_array() == nullptr) {
    return fail(what, "it has no list of communicators");
  }
  RasReport report{.nccl_version = text_in(*json, "nccl_version"), .has_counts = true};
  if (const Json* ras = json->find("ras")) report.timeouts = integer_in(*ras, "timeouts_count");
  std::size_t room = kRasRanks;
  for (const Json& object : *communicators->as_array()) {
    if (object.as_object() == nullptr || report.communicators.size() == kRasCommunicators) {
      ++report.left_out;
      continue;
    }
    RasCommunicator& communicator = report.communicators.emplace_back();
    communicator.hash = text_in(object, "hash");
    if (std::string second = text_in(object, "secondary_hash"); !second.empty()) communicator.hash += ":" + second;
    communicator.size = integer_in(object, "size");
    read_ranks(list_in(object, "ranks"), read_rank, communicator.ranks, room, report.left_out);
    read_ranks(list_in(object, "missing_ranks"), read_missing, communicator.missing, room, report.left_out);
    communicator.missing_ranks = static_cast<std::int64_t>(communicator.missing.size());
  }
  return report;
}

// The text with the comma that NCCL 2.28.9 leaves out behind a missing rank's "nvml_dev"; empty if none is left out.
std::string with_left_out_commas(std::string_view text) {
  constexpr std::string_view kBefore = "\"nvml_dev\":";
  constexpr std::string_view kNumber = " -0123456789";
  constexpr std::string_view kBlanks = " \t\r\n";
  std::string repaired;
  std::size_t copied = 0;
  for (std::size_t at = text.find(kBefore); at != std::string_view::npos; at = text.find(kBefore, at + 1)) {
    const std::size_t number_ends = text.find_first_not_of(kNumber, at + kBefore.size());
    const std::size_t next = text.find_first_not_of(kBlanks, number_ends);
    if (next == std::string_view::npos || next == number_ends || text[next] != '"') continue;
    repaired += text.substr(copied, number_ends - copied);
    repaired += ',';
    copied = number_ends;
  }
  return copied == 0 ? std::string() : repaired.append(text.substr(copied));
}

constexpr std::string_view kBegins = "NCCL version ";

// Words of a line, one after another.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(trim(line)) {}

  // Takes these words if the line goes on with them.
  bool take(std::string_view words) {
    if (!rest_.starts_with(words)) return false;
    const std::string_view behind = rest_.substr(words.size());
    if (!behind.empty() && behind.front() != ' ') return false;
    rest_ = trim(behind);
    return true;
  }
  std::string_view word() {
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_ = trim(rest_.substr(word.size()));
    return word;
  }
  // A number from 0 on; a line without it is not what it seemed to be.
  std::optional<std::int64_t> number() {
    const auto number = parse_int(word());
    return number && *number >= 0 ? number : std::nullopt;
  }
  // Leaves out what comes before these words, and them.
  bool skip_to(std::string_view words) {
    const std::size_t at = rest_.find(words);
    if (at == std::string_view::npos) return false;
    rest_ = trim(rest_.substr(at + words.size()));
    return true;
  }

 private:
  std::string_view rest_;
};

// "process 4711 on node 10.0.0.1", wherever it stands in the line.
std::optional<RasProcess> process_in_line(Words words, std::string_view before) {
  if (!words.skip_to(before)) return {};
  const auto pid = words.number();
  if (!pid || !words.take("on node")) return {};
  return RasProcess{printable(words.word(), kRasTextBytes), *pid};
}

class RasTextReader {
 public:
  Result<RasReport> read(std::string_view text) {
    text = text.substr(std::min(text.size(), text.find_first_not_of("\r\n ")));
    if (!text.starts_with(kBegins)) {
      return fail("cannot read NCCL's RAS report", "it begins neither as JSON nor as a report's text: " +
                                                       printable(text.substr(0, text.find('\n')), 80));
    }
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      read_line(text.substr(0, end));
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
    // What is missing or differs stands below these two headlines, which every whole report has.
    report_.is_cut = !has_warnings_;
    return std::move(report_);
  }

 private:
  enum class Section : std::uint8_t { kNone, kSilent, kDead, kMissingRanks, kError, kMismatch, kTimeout };

  void read_line(std::string_view line) {
    Words words(line);
    if (trim(line).empty()) return;
    if (line.starts_with(kBegins)) {
      words.take("NCCL version");
      const std::string_view version = words.word();  // "2.27.3+cuda12.9"
      report_.nccl_version = printable(version.substr(0, version.find('+')), kRasTextBytes);
    } else if (line.starts_with('#')) {
      begin_communicator(line);
    } else if (!line.starts_with(' ')) {
      begin_section(trim(line));
    } else {
      read_part(words);
    }
  }

  void begin_section(std::string_view headline) {
    section_ = Section::kNone;
    if (headline == "Warnings") has_warnings_ = true;
    if (headline == "INCOMPLETE") section_ = Section::kSilent;
    if (headline == "DEAD") section_ = Section::kDead;
    if (headline == "TIMEOUT") section_ = Section::kTimeout;
  }

  // "#0-1 (1f2e...) MISMATCH": the same communicator may come again, below another headline.
  void begin_communicator(std::string_view line) {
    const std::size_t open = line.find('(');
    const std::size_t close = line.find(')');
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return;
    const std::string hash = printable(line.substr(open + 1, close - open - 1), kRasTextBytes);
    const std::string_view headline = trim(line.substr(close + 1));
    section_ = headline == "INCOMPLETE" ? Section::kMissingRanks
               : headline == "ERROR"    ? Section::kError
               : headline == "MISMATCH" ? Section::kMismatch
                                        : Section::kNone;
    collective_.clear();
    communicator_ = communicator_of(printable(line.substr(0, open), kRasTextBytes) + hash, hash);
    if (communicator_ == nullptr) {
      section_ = Section::kNone;
    } else if (section_ == Section::kError) {
      communicator_->has_error = true;
    }
  }

  RasCommunicator* communicator_of(const std::string& key, const std::string& hash) {
    const auto known = std::ranges::find(keys_, key);
    if (known != keys_.end()) return &report_.communicators[static_cast<std::size_t>(known - keys_.begin())];
    if (keys_.size() == kMostDiffering) {
      ++report_.left_out;
      return nullptr;
    }
    keys_.push_back(key);
    report_.communicators.push_back({.hash = hash});
    return &report_.communicators.back();
  }

  void read_part(Words words) {
    switch (section_) {
      case Section::kSilent: return add_process(words, report_.silent);
      case Section::kDead: return add_process(words, report_.dead);
      case Section::kMissingRanks: return add_missing(words);
      case Section::kMismatch: return add_launched(words);
      case Section::kTimeout:
        if (words.take("Encountered")) report_.timeouts = words.number().value_or(0);
        return;
      default: return;
    }
  }

  // Whether one more rank or process may be kept.
  bool has_room() {
    if (ranks_ == kRasRanks) ++report_.left_out;
    return ranks_ < kRasRanks && ++ranks_ > 0;
  }

  void add_process(Words words, std::vector<RasProcess>& processes) {
    if (auto process = process_in_line(words, "Process "); process && has_room())
      processes.push_back(std::move(*process));
  }

  // "Missing communicator data from 8 ranks", then "Rank 5 -- GPU 1 managed by process 4711 on node 10.0.0.1".
  void add_missing(Words words) {
    if (words.take("Missing communicator data from")) {
      communicator_->missing_ranks = words.number().value_or(0);
      return;
    }
    if (!words.take("Rank")) return;
    const auto rank = words.number();
    if (!rank || *rank > INT32_MAX || !has_room()) return;
    communicator_->missing.push_back({.rank = static_cast<int>(*rank),
                                      .process = process_in_line(words, "process ").value_or(RasProcess{"", -1}),
                                      .is_silent = true});
  }

  void add_launched(Words words) {
    if (words.take("Communicator ranks have different")) {
      const std::string_view what = words.word();
      // NCCL 2.24 and 2.25: "different collective operation counts".
      collective_ = what == "collective" ? "" : printable(what, kRasTextBytes);
      return;
    }
    Words line = words;
    if (line.take("Rank")) return name_rank(line);
    const auto ranks = line.number();
    const auto operations = operations_in(line);
    if (!ranks || !operations || !has_room()) return;
    communicator_->launched.push_back({.collective = collective_, .operations = *operations, .ranks = *ranks});
  }

  // "have launched up to operation 1904", "has not launched any operations".
  static std::optional<std::int64_t> operations_in(Words& line) {
    (void)line.take("ranks");
    if (!line.take("have") && !line.take("has")) return {};
    if (line.take("not launched any operations")) return 0;
    if (line.take("launched up to operation")) return line.number();
    return {};
  }

  // "Rank 5 has launched up to operation 1903 -- GPU 0 managed ..." stands alone; "Rank 5 -- GPU 0 managed ..." belongs
  // to the line before.
  void name_rank(Words line) {
    const auto rank = line.number();
    if (!rank || *rank > INT32_MAX || !has_room()) return;
    if (const auto operations = operations_in(line)) {
      communicator_->launched.push_back({.collective = collective_, .operations = *operations, .ranks = 1});
    }
    if (communicator_->launched.empty()) return;
    communicator_->launched.back().named.push_back(static_cast<int>(*rank));
  }

  // Communicators that a report tells anything of. They are searched one by one.
  static constexpr std::size_t kMostDiffering = 4096;

  RasReport report_;
  std::vector<std::string> keys_;  // of the communicators, in their order
  RasCommunicator* communicator_ = nullptr;
  Section section_ = Section::kNone;
  std::string collective_;
  bool has_warnings_ = false;
  std::size_t ranks_ = 0;
};

}  // namespace

Result<RasReport> read_ras_report(std::string_view text) {
  if (text.size() > kRasBytes) {
    return fail(format("cannot read {}", kReport), format("it has more than {} MiB", kRasBytes >> 20));
  }
  if (!trim(text.substr(0, kRasTextBytes)).starts_with('{')) return read_ras_text(text);
  const std::string repaired = with_left_out_commas(text);
  return read_json_report(repaired.empty() ? text : repaired);
}

Result<RasReport> read_ras_text(std::string_view text) { return RasTextReader().read(text); }

}  // namespace elastic::evidence
