#include "rendezvous/coordinator/recording.h"

#include <array>
#include <concepts>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "src/base/json.h"
#include "src/base/limits.h"
#include "src/base/text.h"

namespace elastic::coordinator {

using namespace protocol;

namespace {

constexpr const char* kFormat = "elastic-run coordinator recording";
constexpr int kVersion = 1;
constexpr std::size_t kLevels = 16;
constexpr std::size_t kMembers = 200;

// What a whole number may be. What a coordinator refuses itself has the bounds of its type: it may have been told so.
// What it reckons with unseen has closer ones, so that no recording can make it overflow.
struct Bounds {
  std::int64_t least = 0;
  std::int64_t most = 0;
};
template <class T>
constexpr Bounds kAny = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
constexpr Bounds kMs = {0, 1LL << 53};
constexpr Bounds kSignedMs = {-(1LL << 53), 1LL << 53};
constexpr Bounds kRoundNodes = {0, static_cast<std::int64_t>(limits::kNodesPerJob)};
constexpr Bounds kCount = {0, limits::kMaxRestarts};
constexpr Bounds kClaims = {0, std::numeric_limits<int>::max() - 1};

// --- Names, in the order of their values. --------------------------------------------------------------

template <class Enum>
struct Names;
template <>
struct Names<FailureKind> {
  static constexpr std::array kWords = {"killed", "traceback", "other", "communication"};
};
template <>
struct Names<Verdict::Outcome> {
  static constexpr std::array kWords = {"succeeded", "failed", "stopped"};
};
template <>
struct Names<JobRules::ScaleUp> {
  static constexpr std::array kWords = {"now", "after", "on-restart", "never"};
};
template <>
struct Names<JobRules::CrashLoop> {
  static constexpr std::array kWords = {"stop", "restart"};
};
template <>
struct Names<Crash::Kind> {
  static constexpr std::array kWords = {"import", "syntax", "missing-file"};
};
template <>
struct Names<CheckRules::When> {
  static constexpr std::array kWords = {"never", "first", "suspect", "always"};
};
template <>
struct Names<CheckPlan::Unfit::Kind> {
  static constexpr std::array kWords = {"faulty", "undetermined", "straggler", "link"};
};
template <>
struct Names<AgentFacts::Activity> {
  static constexpr std::array kWords = {"idle", "preparing", "running", "succeeded", "stopping"};
};
// Of a variant's alternatives.
template <>
struct Names<Event> {
  static constexpr std::array kWords = {"said", "heard", "session-ended", "introduced", "node-emptied", "time-passed"};
};
template <>
struct Names<AgentMessage> {
  static constexpr std::array kWords = {"node-joins",        "store-is-open",   "worker-failed",
                                        "workers-succeeded", "node-cannot-run", "node-stopped",
                                        "node-leaves",       "check-done",      "verdict-heard"};
};
template <>
struct Names<CheckAnswer> {
  static constexpr std::array kWords = {"phases", "orders", "unfit"};
};
static_assert(Names<Event>::kWords.size() == std::variant_size_v<Event>);
static_assert(Names<AgentMessage>::kWords.size() == std::variant_size_v<AgentMessage>);
static_assert(Names<CheckAnswer>::kWords.size() == std::variant_size_v<CheckAnswer>);

template <class Named>
std::optional<std::size_t> find_name(const std::string& word) {
  for (std::size_t i = 0; i < Names<Named>::kWords.size(); ++i) {
    if (word == Names<Named>::kWords[i]) return i;
  }
  return {};
}

template <class Named>
std::string all_names() {
  return join({Names<Named>::kWords.begin(), Names<Named>::kWords.end()}, ", ");
}

// --- Values that JSON has no way to say. -----------------------------------------------------------------

constexpr std::string_view kDigits = "0123456789abcdef";

// A JSON number loses what is beyond 2^53.
std::string hex(std::uint64_t number) { return format("0x{:x}", number); }

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  if (!text.starts_with("0x") || text.size() < 3 || text.size() > 18) return {};
  std::uint64_t number = 0;
  for (const char c : text.substr(2)) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return {};
    number = number << 4 | digit;
  }
  return number;
}

bool is_kept_by_json(const std::string& text) {
  bool is_ascii = true;
  for (const char c : text) is_ascii = is_ascii && static_cast<unsigned char>(c) < 0x80;
  if (is_ascii) return true;
  const auto again = Json::parse(Json(text).dump(), "");
  return again && again->as_string() != nullptr && *again->as_string() == text;
}

Json text_json(const std::string& text) {
  if (is_kept_by_json(text)) return Json(text);
  std::string bytes;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    bytes += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  Json out = Json::object();
  out.set("bytes", std::move(bytes));
  return out;
}

std::optional<std::string> text_of(const Json& json) {
  if (const std::string* text = json.as_string()) return *text;
  const Json* bytes = json.find("bytes");
  const std::string* digits = bytes != nullptr ? bytes->as_string() : nullptr;
  if (digits == nullptr || digits->size() % 2 != 0) return {};
  std::string text;
  for (std::size_t i = 0; i < digits->size(); i += 2) {
    const std::size_t high = kDigits.find((*digits)[i]);
    const std::size_t low = kDigits.find((*digits)[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return {};
    text += static_cast<char>(high << 4 | low);
  }
  return text;
}

// --- The members of each value, for writing and for reading. ----------------------------------------------

// The value, to be written from or read into.
template <class Archive, class T>
using Of = std::conditional_t<Archive::kWrites, const T, T>;

template <class A>
void fields(A& a, Of<A, StoreEndpoint>& v) {
  a("address", v.address);
  a("port", v.port);
}
template <class A>
void fields(A& a, Of<A, ExitStatus>& v) {
  a("code", v.code);
  a("signal", v.signal);
  a("core_dumped", v.core_dumped);
}
template <class A>
void fields(A& a, Of<A, WorkerFailure>& v) {
  a("rank", v.rank);
  a("local_rank", v.local_rank);
  a("node_rank", v.node_rank);
  a("pid", v.pid);
  a("exit", v.exit);
  a("wall_ms", v.wall_ms);
  a("stopped_by_us", v.stopped_by_us);
  a("kind", v.kind);
  a("host", v.host);
}
template <class A>
void fields(A& a, Of<A, NodePlace>& v) {
  a("node_rank", v.node_rank);
  a("node_count", v.node_count);
  a("base_rank", v.base_rank);
  a("world_size", v.world_size);
  a("base_role_rank", v.base_role_rank);
  a("role_world_size", v.role_world_size);
}
template <class A>
void fields(A& a, Of<A, Verdict>& v) {
  a("outcome", v.outcome);
  a("reason", v.reason);
  a("round", v.round);
  a("restarts_used", v.restarts_used, kCount);
  a("signal", v.signal);
  a("failures", v.failures);
  a("left_behind", v.left_behind);
  a.unless_new("is_deterministic", v.is_deterministic);
}
template <class A>
void fields(A& a, Of<A, Crash>& v) {
  a("kind", v.kind);
  a("digest", v.digest);
}
template <class A>
void fields(A& a, Of<A, JobTerms>& v) {
  a("min_nodes", v.min_nodes);
  a("max_nodes", v.max_nodes);
  a("node_unit", v.node_unit);
  a("max_restarts", v.max_restarts);
}
template <class A>
void fields(A& a, Of<A, JobRules>& v) {
  a("last_call_ms", v.last_call_ms, kMs);
  a("join_timeout_ms", v.join_timeout_ms, kMs);
  a("replacement_grace_ms", v.replacement_grace_ms, kMs);
  a("scale_up", v.scale_up);
  a("scale_up_after_ms", v.scale_up_after_ms, kMs);
  a("node_losses", v.node_losses);
  a("loss_window_ms", v.loss_window_ms, kMs);
  a("keep_out_ms", v.keep_out_ms, kMs);
  a("job_losses", v.job_losses);
  a("replacement_wait_ms", v.replacement_wait_ms, kMs);
  a.unless_new("crash_loop", v.crash_loop);
}
template <class A>
void fields(A& a, Of<A, CheckRules>& v) {
  a("when", v.when);
  a("excludes_stragglers", v.excludes_stragglers);
  a("only", v.only);
  a("measures_all", v.measures_all);
}
template <class A>
void fields(A& a, Of<A, AgentFacts>& v) {
  a("incarnation", v.incarnation);
  a("term", v.term);
  a("round", v.round);
  a("activity", v.activity);
  a("place", v.place);
  a("restart_count", v.restart_count, kCount);
  a("losses", v.losses, kCount);
  a("membership", v.membership);
  a("failures", v.failures);
  a("verdict", v.verdict);
}
template <class A>
void fields(A& a, Of<A, NodeJoins>& v) {
  a("address", v.address);
  a("agent", v.agent);
  a("local_world_size", v.local_world_size);
  a("role", v.role);
  a("node_rank", v.node_rank, kClaims);
  a("hosts_coordinator", v.hosts_coordinator);
  a("terms", v.terms);
  a("rules", v.rules);
  a.unless_new("facts", v.facts);
  a.unless_new("addresses", v.addresses);
  a.unless_new("check_rules", v.check);
  a.unless_new("session", v.session);
  a.unless_new("group", v.group);
}
template <class A>
void fields(A& a, Of<A, StoreIsOpen>& v) {
  a("round", v.round);
  a("endpoint", v.endpoint);
}
template <class A>
void fields(A& a, Of<A, WorkerFailed>& v) {
  a("round", v.round);
  a("failure", v.failure);
}
template <class A>
void fields(A& a, Of<A, WorkersSucceeded>& v) {
  a("round", v.round);
}
template <class A>
void fields(A& a, Of<A, NodeCannotRun>& v) {
  a("round", v.round);
  a("reason", v.reason);
}
template <class A>
void fields(A& a, Of<A, NodeStopped>& v) {
  a("round", v.round);
  a("failures", v.failures);
  a("crash", v.crash);
}
template <class A>
void fields(A& a, Of<A, NodeLeaves>& v) {
  a("signal", v.signal);
}
template <class A>
void fields(A& a, Of<A, CheckDone>& v) {
  a("round", v.round);
  a("phase", v.phase);
  a("result", v.result);
}
template <class A>
void fields(A& a, Of<A, VerdictHeard>& v) {
  a.unless_new("details", v.details);
}

template <class A>
void fields(A& a, Of<A, MessageReceived>& v) {
  a("from", v.from);
  a.one_of("message", v.message);
}
template <class A>
void fields(A& a, Of<A, KeepAliveReceived>& v) {
  a("from", v.from);
}
template <class A>
void fields(A& a, Of<A, SessionEnded>& v) {
  a("from", v.from);
  a("how", v.how);
  a.unless_new("by_us", v.by_us);
}
template <class A>
void fields(A& a, Of<A, Introduced>& v) {
  a("incarnation", v.incarnation);
  a("term", v.term);
}
template <class A>
void fields(A& a, Of<A, NodeEmptied>& v) {
  a("agent", v.agent);
  a("incarnation", v.incarnation);
  a("round", v.round);
}
template <class A>
void fields(A&, Of<A, TimePassed>&) {}
template <class A>
void fields(A& a, Of<A, RecordedEvent>& v) {
  a("at_ms", v.at_ms, kSignedMs);
  a.one_of("event", v.event);
}

template <class A>
void fields(A& a, Of<A, CheckPlan::Unfit>& v) {
  a("node_rank", v.node_rank, kRoundNodes);
  a("why", v.why);
  a.unless_new("kind", v.kind);
}
template <class A>
void fields(A& a, Of<A, CheckPhases>& v) {
  a("phases", v.phases, kCount);
}
template <class A>
void fields(A& a, Of<A, CheckOrders>& v) {
  a("orders", v.orders);
}
template <class A>
void fields(A& a, Of<A, CheckUnfit>& v) {
  a("unfit", v.unfit);
}

template <class A>
void fields(A& a, Of<A, CoordinatorConfig>& v) {
  a("term", v.term);
  a("incarnation", v.incarnation);
  a("loss_timeout_ms", v.lease.loss_timeout_ms, kMs);
  a("now_ms", v.now_ms, kSignedMs);
  a.unless_new("random", v.random);
  a.unless_new("is_claimed", v.is_claimed);
}
template <class A>
void fields(A& a, Of<A, RecordingHead>& v) {
  a("job", v.job);
  a("program", v.program);
  a("birth", v.config);
  a("has_check", v.has_check);
}

template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, std::uint64_t>;

class Writer {
 public:
  static constexpr bool kWrites = true;
  explicit Writer(Json& object) : object_(object) {}

  template <class T>
  void operator()(const char* name, const T& value) {
    object_.set(name, json(value));
  }
  template <class T>
  void operator()(const char* name, const T& value, Bounds) {
    object_.set(name, json(value));
  }
  template <class T>
  void unless_new(const char* name, const T& value) {
    object_.set(name, value == T{} ? Json() : json(value));
  }
  // A variant: the name of its alternative, and the members of that.
  template <class Variant>
  void one_of(const char* name, const Variant& value) {
    object_.set(name, Names<Variant>::kWords[value.index()]);
    std::visit([this](const auto& known) { fields(*this, known); }, value);
  }

 private:
  template <class T>
  static Json json(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return Json(Names<T>::kWords.at(static_cast<std::size_t>(value)));
    } else if constexpr (std::same_as<T, bool>) {
      return Json(value);
    } else if constexpr (std::same_as<T, std::uint64_t>) {
      return Json(hex(value));
    } else if constexpr (std::integral<T>) {
      return Json(static_cast<std::int64_t>(value));
    } else if constexpr (std::same_as<T, std::string>) {
      return text_json(value);
    } else {
      Json out = Json::object();
      Writer nested(out);
      fields(nested, value);
      return out;
    }
  }
  template <class T>
  static Json json(const std::optional<T>& value) {
    return value ? json(*value) : Json();
  }
  template <class T>
  static Json json(const std::vector<T>& values) {
    Json out = Json::array();
    for (const T& value : values) out.push(json(value));
    return out;
  }

  Json& object_;
};

// Keeps the first thing that is wrong, as a clause; what follows it means nothing.
class Reader {
 public:
  static constexpr bool kWrites = false;
  Reader(const Json& object, std::string path, std::string& error)
      : object_(object), path_(std::move(path)), error_(error) {}

  template <class T>
  void operator()(const char* name, T& value, Bounds bounds) {
    if (const Json* json = member(name)) read(*json, name, value, bounds);
  }
  template <class T>
  void operator()(const char* name, T& value) {
    if (const Json* json = member(name)) read(*json, name, value);
  }
  // May be null, and may be left out.
  template <class T>
  void operator()(const char* name, std::optional<T>& value) {
    if (const Json* json = object_.find(name); json != nullptr && !json->is_null()) read(*json, name, value.emplace());
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& value, Bounds bounds) {
    const Json* json = object_.find(name);
    if (json != nullptr && !json->is_null()) read(*json, name, value.emplace(), bounds);
  }
  template <class T>
  void unless_new(const char* name, T& value) {
    if (const Json* json = object_.find(name); json != nullptr && !json->is_null()) read(*json, name, value);
  }
  template <class Variant>
  void one_of(const char* name, Variant& value) {
    const Json* json = member(name);
    if (json == nullptr) return;
    const std::string* word = json->as_string();
    const auto index = word != nullptr ? find_name<Variant>(*word) : std::nullopt;
    if (!index) return wrong(name, format("is none of {}", all_names<Variant>()));
    choose(value, *index, std::make_index_sequence<std::variant_size_v<Variant>>());
  }

 private:
  const Json* member(const char* name) {
    const Json* json = object_.find(name);
    if (json == nullptr) wrong(name, "is missing");
    return json;
  }
  void wrong(const std::string& name, const std::string& what) {
    if (error_.empty()) error_ = format("member {}{} {}", path_, name, what);
  }
  template <class Variant, std::size_t... kIndexes>
  void choose(Variant& value, std::size_t index, std::index_sequence<kIndexes...>) {
    static_cast<void>(((index == kIndexes && (fields(*this, value.template emplace<kIndexes>()), true)) || ...));
  }

  template <WholeNumber T>
  void read(const Json& json, const std::string& name, T& value, Bounds bounds = kAny<T>) {
    const auto number = json.as_integer();
    if (!number || *number < bounds.least || *number > bounds.most) {
      return wrong(name, format("is no whole number from {} to {}", bounds.least, bounds.most));
    }
    value = static_cast<T>(*number);
  }
  void read(const Json& json, const std::string& name, bool& value) {
    const auto flag = json.as_bool();
    if (!flag) return wrong(name, "is neither true nor false");
    value = *flag;
  }
  void read(const Json& json, const std::string& name, std::uint64_t& value) {
    const std::string* text = json.as_string();
    const auto number = text != nullptr ? parse_hex(*text) : std::nullopt;
    if (!number) return wrong(name, "is no text of 1 to 16 digits 0-9a-f behind 0x");
    value = *number;
  }
  void read(const Json& json, const std::string& name, std::string& value) {
    auto text = text_of(json);
    if (!text) return wrong(name, "is no text");
    value = std::move(*text);
  }
  template <class T>
  requires std::is_enum_v<T>
  void read(const Json& json, const std::string& name, T& value) {
    const std::string* word = json.as_string();
    const auto index = word != nullptr ? find_name<T>(*word) : std::nullopt;
    if (!index) return wrong(name, format("is none of {}", all_names<T>()));
    value = static_cast<T>(*index);
  }
  template <class T>
  void read(const Json& json, const std::string& name, std::vector<T>& values) {
    const Json::Array* array = json.as_array();
    if (array == nullptr) return wrong(name, "is no list");
    for (const Json& element : *array) {
      const std::string place = format("{}[{}]", name, values.size());
      read(element, place, values.emplace_back());
      if (!error_.empty()) return;
    }
  }
  template <class T>
  requires std::is_class_v<T>
  void read(const Json& json, const std::string& name, T& value) {
    if (json.as_object() == nullptr) return wrong(name, "is no object");
    Reader nested(json, format("{}{}.", path_, name), error_);
    fields(nested, value);
  }

  const Json& object_;
  std::string path_;  // of the object: "failure.exit."
  std::string& error_;
};

template <class T>
std::string line_of(const char* first_name, Json first, const T& value) {
  Json out = Json::object();
  if (first_name != nullptr) out.set(first_name, std::move(first));
  Writer writer(out);
  fields(writer, value);
  return out.dump() + "\n";
}

Result<Json> parse_line(std::string_view line, const std::string& place) {
  constexpr const char* kRemedy = "correct the line, or take it out";
  if (line.size() > limits::kRecordingLineBytes) {
    return fail(place, format("the line is longer than {} bytes", limits::kRecordingLineBytes));
  }
  if (std::string over = json_over_bounds(line, kLevels, kMembers); !over.empty()) return fail(place, over, kRemedy);
  auto parsed = Json::parse(line, place);
  if (!parsed) return fail(place, format("it is no JSON: {}", printable(parsed.error().reason)), kRemedy);
  if (parsed->as_object() == nullptr) return fail(place, "it is no JSON object", kRemedy);
  return parsed;
}

}  // namespace

std::string recording_head(const RecordingHead& head) {
  Json out = Json::object();
  out.set("format", kFormat);
  out.set("version", kVersion);
  Writer writer(out);
  fields(writer, head);
  return out.dump() + "\n";
}

std::string recording_head(const std::string& job, const CoordinatorConfig& config, bool has_check) {
  return recording_head(
      {.job = job, .program = "elastic-run " ELASTIC_RUN_VERSION, .config = config, .has_check = has_check});
}

std::string recording_line(const Event& event, std::int64_t at_ms) {
  return line_of(nullptr, {}, RecordedEvent{at_ms, event});
}

std::string recording_line(const CheckAnswer& answer) {
  return std::visit(
      [&](const auto& known) { return line_of("check", Names<CheckAnswer>::kWords[answer.index()], known); }, answer);
}

Result<RecordingHead> parse_recording_head(std::string_view line, const std::string& place) {
  constexpr const char* kRemedy = "name a file that --record has written";
  const auto parsed = parse_line(line, place);
  const Json* format_name = parsed ? parsed->find("format") : nullptr;
  const Json* version = parsed ? parsed->find("version") : nullptr;
  if (format_name == nullptr || format_name->as_string() == nullptr || *format_name->as_string() != kFormat) {
    return fail(place, format("it is no {}", kFormat), kRemedy);
  }
  const auto number = version != nullptr ? version->as_integer() : std::nullopt;
  if (!number || *number < 1) return fail(place, "member version is no whole number above 0", kRemedy);
  if (*number > kVersion) {
    return fail(place,
                format("the recording is of version {}, and this elastic-run reads version {}", *number, kVersion),
                "use the elastic-run that has written it, or a newer one");
  }
  RecordingHead head;
  std::string error;
  Reader reader(*parsed, "", error);
  fields(reader, head);
  if (!error.empty()) return fail(place, error, "correct the line");
  return head;
}

Result<RecordedLine> parse_recording_line(std::string_view line, const std::string& place) {
  const auto parsed = parse_line(line, place);
  if (!parsed) return std::unexpected(parsed.error());
  RecordedLine read;
  std::string error;
  Reader reader(*parsed, "", error);
  if (parsed->find("check") != nullptr) {
    reader.one_of("check", read.emplace<CheckAnswer>());
  } else {
    fields(reader, read.emplace<RecordedEvent>());
  }
  if (!error.empty()) return fail(place, error, "correct the line, or take it out");
  return read;
}

namespace {

class RecordedCheck : public CheckPlan {
 public:
  RecordedCheck(std::unique_ptr<CheckPlan> plan, std::function<void(std::string line)> write)
      : plan_(std::move(plan)), write_(std::move(write)) {}

  int phases(const std::vector<CheckNode>& nodes, const CheckRules& rules) const override {
    const int answer = plan_->phases(nodes, rules);
    write_(recording_line(CheckPhases{answer}));
    return answer;
  }
  std::vector<std::string> orders(std::uint32_t phase, const std::vector<CheckNode>& nodes,
                                  const std::vector<CheckResults>& earlier, const CheckRules& rules) const override {
    std::vector<std::string> answer = plan_->orders(phase, nodes, earlier, rules);
    write_(recording_line(CheckOrders{answer}));
    return answer;
  }
  std::vector<Unfit> unfit(const std::vector<CheckNode>& nodes,
                           const std::vector<CheckResults>& results) const override {
    std::vector<Unfit> answer = plan_->unfit(nodes, results);
    write_(recording_line(CheckUnfit{answer}));
    return answer;
  }

 private:
  std::unique_ptr<CheckPlan> plan_;
  std::function<void(std::string line)> write_;
};

}  // namespace

std::unique_ptr<CheckPlan> recorded_check(std::unique_ptr<CheckPlan> plan,
                                          std::function<void(std::string line)> write) {
  return std::make_unique<RecordedCheck>(std::move(plan), std::move(write));
}

}  // namespace elastic::coordinator
