#include "health/evidence/flight_recorder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "health/evidence/pickle_tree.h"
#include "src/base/json.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

constexpr std::string_view kDump = "the flight recorder's dump";
// A pickle may have the same value in a million places, so that whatever is read again and again has a bound.
constexpr std::size_t kMostMembers = 256;  // of the dump, and of an entry
constexpr std::size_t kMostStatusGroups = 4096;
constexpr std::size_t kMostDigits = 20;
constexpr std::size_t kMostRanksBytes = 8 * kFlightMembers;
constexpr std::size_t kMostTensors = 4096;  // of one operation; a digest needs no more
constexpr std::size_t kMostDimensions = 64;

std::optional<std::int64_t> number_in(std::string_view text) {
  return text.size() <= kMostDigits ? parse_int(text) : std::nullopt;
}

// A value of JSON, with the same words as a value of a pickle. Numbers may be written as texts.
class JsonValue {
 public:
  explicit JsonValue(const Json& json) : json_(&json) {}
  bool is_dict() const { return json_->as_object() != nullptr; }
  std::optional<bool> as_bool() const { return json_->as_bool(); }
  std::optional<std::int64_t> as_integer() const {
    if (const std::string* text = json_->as_string()) return number_in(*text);
    return json_->as_integer();
  }
  std::optional<std::string_view> as_text() const {
    const std::string* text = json_->as_string();
    return text != nullptr ? std::optional<std::string_view>(*text) : std::nullopt;
  }
  std::size_t items() const { return json_->as_array() != nullptr ? json_->as_array()->size() : 0; }
  template <class Use>
  void each_item(Use use, std::size_t most, std::size_t first = 0) const {
    const std::size_t count = items();
    for (std::size_t i = first; i < count && i - first < most; ++i) use(JsonValue((*json_->as_array())[i]));
  }
  template <class Use>
  void each_member(Use use, std::size_t most) const {
    const Json::Object* members = json_->as_object();
    for (std::size_t i = 0; members != nullptr && i < members->size() && i < most; ++i) {
      use(std::string_view((*members)[i].first), JsonValue((*members)[i].second));
    }
  }

 private:
  const Json* json_;
};

// What pg_config says of a group, and what pg_status counts.
struct Config {
  std::string_view name;
  std::string_view description;
  std::string_view ranks;
};
struct Counted {
  std::optional<std::int64_t> enqueued;
  std::optional<std::int64_t> started;
  std::optional<std::int64_t> completed;
};

struct Entry {
  std::string_view group;
  std::string_view description;
  std::string_view profiling_name;
  std::string_view state;
  std::optional<std::int64_t> group_id;
  std::optional<std::int64_t> record;
  std::optional<std::int64_t> collective;
  std::optional<std::int64_t> p2p;
  std::optional<bool> is_retired;
  bool is_p2p = false;
  bool has_group = false;
};

// FNV-1a of 64 bits.
class Digest {
 public:
  void add(std::int64_t number) {
    for (int i = 0; i < 8; ++i) {
      value_ = (value_ ^ (static_cast<std::uint64_t>(number) >> (8 * i) & 0xFF)) * 0x100000001B3;
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325;
};

struct Sizes {
  Digest digest;
  std::int64_t elements = 0;
  std::string text;
};

// The sum or the product; the largest number where it is larger.
std::int64_t bounded_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
std::int64_t bounded_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

// [[4, 2], [3]]: of each tensor its dimensions.
template <class Value>
Sizes sizes_of(Value list) {
  Sizes sizes;
  const auto add_tensor = [&](Value tensor) {
    std::int64_t elements = 1;
    std::string text;
    const auto add_dimension = [&](Value dimension) {
      const auto length = dimension.as_integer();
      if (!length) return;
      sizes.digest.add(*length);
      elements = bounded_product(elements, *length);
      text += format("{}{}", text.empty() ? "" : "x", *length);
    };
    tensor.each_item(add_dimension, kMostDimensions);
    sizes.digest.add(INT64_MIN);  // no length: the end of a tensor
    sizes.elements = bounded_sum(sizes.elements, elements);
    if (sizes.text.size() > kFlightTextBytes) return;
    sizes.text += format("{}{}", sizes.text.empty() ? "" : ", ", text.empty() ? "1" : text);
  };
  list.each_item(add_tensor, kMostTensors);
  sizes.text = printable(sizes.text, kFlightTextBytes);
  return sizes;
}

FlightOperation::State state_of(std::string_view text) {
  using State = FlightOperation::State;
  if (text == "scheduled") return State::kScheduled;
  if (text == "started") return State::kStarted;
  if (text == "completed") return State::kCompleted;
  return State::kUnknown;
}

// "nccl:all_reduce", "nccl:send 1->2", "nccl:recv 3<-0".
void take_name(std::string_view name, FlightOperation& operation) {
  name = name.substr(0, 4 * kFlightTextBytes);
  const std::size_t colon = name.find(':');
  if (colon != std::string_view::npos) {
    operation.backend = printable(name.substr(0, colon), kFlightTextBytes);
    name.remove_prefix(colon + 1);
  }
  const std::size_t blank = name.find(' ');
  operation.name = printable(name.substr(0, blank), kFlightTextBytes);
  if (blank == std::string_view::npos) return;
  const std::string_view ends = name.substr(blank + 1);
  for (const std::string_view arrow : {"->", "<-"}) {
    const std::size_t at = ends.find(arrow);
    if (at == std::string_view::npos) continue;
    const auto peer = parse_int(ends.substr(at + arrow.size()));
    if (peer && *peer >= 0 && *peer < INT32_MAX) operation.peer = static_cast<int>(*peer);
  }
}

// "[0, 1, 2]"; empty if it is anything else.
std::vector<int> ranks_in(std::string_view text) {
  text = trim(text);
  if (!text.starts_with('[') || !text.ends_with(']') || text.size() < 3 || text.size() > kMostRanksBytes) return {};
  std::vector<int> ranks;
  for (const std::string& part : split(text.substr(1, text.size() - 2), ',')) {
    const auto rank = parse_int(part);
    if (!rank || *rank < 0 || *rank > INT32_MAX || ranks.size() == kFlightMembers) return {};
    ranks.push_back(static_cast<int>(*rank));
  }
  return ranks;
}

void keep_latest(std::optional<std::int64_t>& latest, std::int64_t sequence) {
  if (!latest || *latest < sequence) latest = sequence;
}

// Value: PickleTree::Value or JsonValue.
template <class Value>
class DumpReader {
 public:
  explicit DumpReader(bool is_cut) { facts_.is_cut = is_cut; }

  // False if it is no dump.
  bool read(Value root) {
    if (!root.is_dict()) return false;
    std::optional<Value> entries;
    const auto take_part = [&](std::string_view name, Value value) {
      if (name == "version") facts_.version = printable(value.as_text().value_or(""), kFlightTextBytes);
      if (name == "pg_config") {
        value.each_member([&](std::string_view, Value group) { read_config(group); }, kMostStatusGroups);
      }
      if (name == "pg_status") {
        value.each_member([&](std::string_view id, Value group) { read_status(id, group); }, kMostStatusGroups);
      }
      if (name == "entries") entries = value;
    };
    root.each_member(take_part, kMostMembers);
    if (entries) read_entries(*entries);
    // A dump without entries: the recorder was off, or nothing has happened yet.
    return entries || !facts_.version.empty();
  }

  FlightFacts take() { return std::move(facts_); }

 private:
  void read_config(Value group) {
    Config config;
    const auto take_part = [&](std::string_view name, Value value) {
      const std::string_view text = value.as_text().value_or("");
      if (name == "name") config.name = text.substr(0, kFlightNameBytes);
      if (name == "desc") config.description = text.substr(0, kFlightNameBytes);
      if (name == "ranks") config.ranks = text;
    };
    group.each_member(take_part, kMostMembers);
    if (!config.name.empty()) configs_.emplace(std::pair(config.name, config.description), config);
  }

  void read_status(std::string_view id, Value group) {
    const auto number = number_in(id);
    if (!number) return;
    Counted counted;
    const auto take_part = [&](std::string_view name, Value value) {
      auto count = value.as_integer();
      if (count && *count < 0) count.reset();
      if (name == "last_enqueued_collective") counted.enqueued = count;
      if (name == "last_started_collective") counted.started = count;
      if (name == "last_completed_collective") counted.completed = count;
    };
    group.each_member(take_part, kMostMembers);
    statuses_.emplace(*number, counted);
  }

  // From the newest on, which is the last one, so that what the bounds leave out is old.
  void read_entries(Value list) {
    std::vector<Value> entries;
    const std::size_t old = list.items() - std::min(list.items(), kFlightEntries);
    list.each_item([&](Value entry) { entries.push_back(entry); }, kFlightEntries, old);
    facts_.entries_left_out = old;
    // Nobody knows whether the last one of a file that was cut off is whole.
    if (facts_.is_cut && !entries.empty()) {
      entries.pop_back();
      ++facts_.entries_left_out;
    }
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
      if (!read_entry(*entry)) ++facts_.entries_left_out;
    }
  }

  bool read_entry(Value value) {
    Entry entry;
    value.each_member([&](std::string_view name, Value member) { take_member(name, member, entry); }, kMostMembers);
    const auto sequence = entry.is_p2p ? entry.p2p : entry.collective;
    if (!entry.has_group || !sequence || !entry.record) return false;
    if (!entry.is_retired && entry.state.empty()) return false;
    facts_.oldest_record = facts_.entries == 0 ? *entry.record : std::min(facts_.oldest_record, *entry.record);
    ++facts_.entries;
    FlightGroup* group = group_of(entry);
    if (group == nullptr) {
      facts_.has_more_groups = true;
      return true;
    }
    const auto state = state_of(entry.state);
    const bool is_over = entry.is_retired.value_or(false) || state == FlightOperation::State::kCompleted;
    if (!entry.is_p2p) {
      keep_latest(group->enqueued, *sequence);
      if (is_over || state == FlightOperation::State::kStarted) keep_latest(group->started, *sequence);
      if (is_over) keep_latest(group->completed, *sequence);
    }
    if (!group->newest) group->newest = operation_of(entry, *sequence, state, is_over, value);
    return true;
  }

  static void take_member(std::string_view name, Value member, Entry& entry) {
    if (name == "process_group") take_group(member, entry);
    if (name == "profiling_name") entry.profiling_name = member.as_text().value_or("");
    if (name == "state") entry.state = member.as_text().value_or("");
    if (name == "pg_id") entry.group_id = member.as_integer();
    if (name == "record_id") entry.record = member.as_integer();
    if (name == "collective_seq_id") entry.collective = member.as_integer();
    if (name == "p2p_seq_id") entry.p2p = member.as_integer();
    if (name == "retired") entry.is_retired = member.as_bool();
    if (name == "is_p2p") entry.is_p2p = member.as_bool().value_or(false);
  }

  static void take_group(Value pair, Entry& entry) {
    std::size_t place = 0;
    const auto take_part = [&](Value item) {
      const std::string_view text = item.as_text().value_or("").substr(0, kFlightNameBytes);
      if (place == 0) {
        entry.group = text;
        entry.has_group = item.as_text().has_value();
      }
      if (place == 1) entry.description = text;
      ++place;
    };
    pair.each_item(take_part, 2);
  }

  // Null if there are as many groups as may be.
  FlightGroup* group_of(const Entry& entry) {
    const auto key = std::pair(entry.group, entry.description);
    if (const auto known = places_.find(key); known != places_.end()) return &facts_.groups[known->second];
    if (facts_.groups.size() == kFlightGroups) return nullptr;
    places_.emplace(key, facts_.groups.size());
    FlightGroup& group = facts_.groups.emplace_back();
    group.name = printable(entry.group, kFlightNameBytes);
    group.description = printable(entry.description, kFlightNameBytes);
    if (const auto config = configs_.find(key); config != configs_.end())
      group.members = ranks_in(config->second.ranks);
    if (!entry.group_id) return &group;
    if (const auto status = statuses_.find(*entry.group_id); status != statuses_.end()) {
      group.counted_enqueued = status->second.enqueued;
      group.counted_started = status->second.started;
      group.counted_completed = status->second.completed;
    }
    return &group;
  }

  static FlightOperation operation_of(const Entry& entry, std::int64_t sequence, FlightOperation::State state,
                                      bool is_over, Value value) {
    FlightOperation operation;
    take_name(entry.profiling_name, operation);
    operation.record = *entry.record;
    operation.sequence = sequence;
    operation.is_p2p = entry.is_p2p;
    operation.state = state;
    operation.is_over = is_over;
    const auto take_part = [&](std::string_view name, Value member) {
      if (name == "input_sizes") {
        Sizes sizes = sizes_of(member);
        operation.input_digest = sizes.digest.value();
        operation.input_elements = sizes.elements;
        operation.sizes = std::move(sizes.text);
      }
      if (name == "output_sizes") {
        const Sizes sizes = sizes_of(member);
        operation.output_digest = sizes.digest.value();
        operation.output_elements = sizes.elements;
      }
      if (name == "input_dtypes") {
        const auto take_type = [&](Value type) {
          operation.dtype = printable(type.as_text().value_or(""), kFlightTextBytes);
        };
        member.each_item(take_type, 1);
      }
    };
    value.each_member(take_part, kMostMembers);
    return operation;
  }

  FlightFacts facts_;
  // All texts are the dump's own.
  std::map<std::pair<std::string_view, std::string_view>, Config> configs_;
  std::map<std::int64_t, Counted> statuses_;
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> places_;  // of groups in facts_
};

template <class Value>
Result<FlightFacts> facts_in(Value root, bool is_cut) {
  DumpReader<Value> reader(is_cut);
  if (!reader.read(root)) {
    return fail(format("cannot read {}", kDump), "it has neither a version nor entries");
  }
  return reader.take();
}

}  // namespace

Result<FlightFacts> flight_facts_of_pickle(std::string bytes) {
  auto tree = PickleTree::read(std::move(bytes), std::string(kDump));
  if (!tree) return std::unexpected(tree.error());
  return facts_in(tree->root(), tree->is_cut());
}

Result<FlightFacts> flight_facts_of_json(std::string_view text) {
  const std::string what = format("cannot read {}", kDump);
  if (text.size() > kFlightJsonBytes) return fail(what, format("it has more than {} MiB", kFlightJsonBytes >> 20));
  if (std::string wrong = json_over_bounds(text, kFlightJsonLevels, kFlightJsonMembers); !wrong.empty()) {
    return fail(what, std::move(wrong));
  }
  const auto json = Json::parse(text, std::string(kDump));
  if (!json) return std::unexpected(json.error());
  return facts_in(JsonValue(*json), false);
}

}  // namespace elastic::evidence
