#include "health/progress/nvrx_message.h"

#include <array>
#include <bit>
#include <utility>

#include "health/progress/object_pickle.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::progress::nvrx {
namespace {

using Kind = ObjectPickle::Kind;
using Value = ObjectPickle::Value;

constexpr std::string_view kData = "nvidia_resiliency_ext.fault_tolerance.data";
constexpr std::string_view kConfig = "nvidia_resiliency_ext.fault_tolerance.config";
// So many steps after the start are no measure of later ones; NVRx's own default.
constexpr std::uint8_t kWarmupIterations = 5;

// The name of a class of data.py; empty: it is another one.
std::string_view name_in_data(std::string_view class_name) {
  if (!class_name.starts_with(kData) || class_name.substr(kData.size(), 1) != " ") return {};
  return class_name.substr(kData.size() + 1);
}

struct Member {
  std::string_view name;
  int value;
};
constexpr std::array kSectionActions = std::to_array<Member>({{"OPEN", 1}, {"CLOSE", 2}, {"CLOSE_ALL", 3}});
constexpr std::array kWorkloadActions =
    std::to_array<Member>({{"Continue", 0}, {"ExcludeThisNode", 1}, {"ShutdownWorkload", 2}});

template <std::size_t kCount>
std::optional<int> value_of(const std::array<Member, kCount>& members, std::string_view name) {
  for (const Member& member : members) {
    if (member.name == name) return member.value;
  }
  return {};
}

// A member of an enum, as Python's versions pickle it: the enum called with the value, getattr() called with the enum
// and the name, or the name behind that of the enum.
template <std::size_t kCount>
std::optional<int> enum_member(const Value& value, std::string_view of, const std::array<Member, kCount>& members) {
  const std::string_view is = name_in_data(value.class_name());
  if (value.kind() == Kind::kClass) {
    if (!is.starts_with(of) || is.substr(of.size(), 1) != ".") return {};
    return value_of(members, is.substr(of.size() + 1));
  }
  const auto arguments = value.arguments();
  if (!arguments) return {};
  if (is == of) {
    const auto first = arguments->item(0);
    const auto number = first ? first->as_integer() : std::nullopt;
    for (const Member& member : members) {
      if (number == member.value) return member.value;
    }
    return {};
  }
  if (value.class_name() != "builtins getattr" && value.class_name() != "__builtin__ getattr") return {};
  const auto owner = arguments->item(0);
  const auto name = arguments->item(1);
  if (!owner || !name || owner->kind() != Kind::kClass || name_in_data(owner->class_name()) != of) return {};
  return value_of(members, name->as_text().value_or(""));
}

std::unexpected<Error> unknown(const std::string& reason) { return fail("cannot read a message of NVRx", reason); }

Result<Message> read_section(const Value& message) {
  const auto action = message.attribute("action");
  const auto number = action ? enum_member(*action, "SectionAction", kSectionActions) : std::nullopt;
  if (!number) return unknown("a SectionMsg has no action that is known");
  Section section{.action = static_cast<Section::Action>(*number)};
  if (const auto iteration = message.attribute("iteration")) section.iteration = iteration->as_integer();
  if (section.iteration < 0) section.iteration.reset();
  if (section.action == Section::Action::kCloseAll) return section;
  const auto name = message.attribute("section");
  if (!name || !name->as_text()) return unknown("a SectionMsg has no name of a section");
  section.name = *name->as_text();
  return section;
}

// --- What is answered, opcode by opcode: protocol 2, which every Python reads.

std::string framed(const std::string& pickle) {
  std::string out;
  for (std::size_t i = kLengthBytes; i-- > 0;) out += static_cast<char>(pickle.size() >> (8 * i) & 0xFF);
  return out + pickle;
}

std::string text(std::string_view content) {
  std::string out = "X";
  for (int i = 0; i < 4; ++i) out += static_cast<char>(content.size() >> (8 * i) & 0xFF);
  return out.append(content);
}

std::string real(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  std::string out = "G";
  for (int i = 7; i >= 0; --i) out += static_cast<char>(bits >> (8 * i) & 0xFF);
  return out;
}

constexpr const char* kNothing = "N";
constexpr const char* kFalse = "\x89";

std::string small(std::uint8_t number) { return std::string("K") + static_cast<char>(number); }

// Names and values in turns.
std::string dict(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string out = "}(";
  for (const auto& [name, value] : members) out += text(name) + value;
  return out + "u";
}

// A class's __new__ without arguments.
std::string object(std::string_view module, std::string_view name) {
  return std::string("c").append(module).append("\n").append(name).append("\n)\x81");
}

std::string message(const std::string& value) { return framed("\x80\x02" + value + "."); }

}  // namespace

std::size_t length_of(std::string_view bytes) {
  ELASTIC_CHECK(bytes.size() >= kLengthBytes);
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length = length << 8 | static_cast<std::uint8_t>(bytes[i]);
  return length;
}

Result<Message> read_message(std::string_view pickle) {
  const auto read = ObjectPickle::read(pickle);
  if (!read) return std::unexpected(read.error());
  const Value root = read->root();
  const std::string_view name = root.kind() == Kind::kObject ? name_in_data(root.class_name()) : "";
  if (name == "AuthkeyMsg") return Authkey{};
  if (name == "InitMsg") return Init{};
  if (name == "HeartbeatMsg") return Heartbeat{};
  if (name == "SectionMsg") return read_section(root);
  if (name == "UpdateConfigMsg") return Timeouts{};
  return unknown(format("it is no message to a monitor: {}", printable(root.class_name())));
}

Result<Request> read_request(std::string_view pickle) {
  const auto read = ObjectPickle::read(pickle);
  if (!read) return std::unexpected(read.error());
  const auto rank = read->root().item(0);
  const auto asked = read->root().item(1);
  if (!asked || name_in_data(asked->class_name()) != "WorkloadControlRequest") {
    return unknown("it is no request to a launcher");
  }
  const auto action = asked->attribute("action");
  const auto number = action ? enum_member(*action, "WorkloadAction", kWorkloadActions) : std::nullopt;
  if (!number) return unknown("a WorkloadControlRequest has no action that is known");
  Request request{.action = static_cast<Request::Action>(*number)};
  // Clients up to 0.4 say it as a text.
  const auto number_of_rank = rank->as_integer();
  request.rank = number_of_rank ? std::to_string(*number_of_rank) : std::string(rank->as_text().value_or(""));
  if (const auto description = asked->attribute("description")) {
    request.description = description->as_text().value_or("");
  }
  return request;
}

std::string ok() { return message(object(kData, "OkMsg")); }

std::string ok_with_settings(const std::vector<std::string>& sections) {
  std::vector<std::pair<std::string, std::string>> limits;
  for (const std::string& section : sections) limits.emplace_back(section, kNothing);
  // What is not here has the default of the client's own class.
  const std::string settings = object(kConfig, "FaultToleranceConfig") +
                               dict({{"workload_check_interval", real(5)},
                                     {"initial_rank_heartbeat_timeout", kNothing},
                                     {"rank_heartbeat_timeout", kNothing},
                                     {"rank_section_timeouts", dict(limits)},
                                     {"rank_out_of_section_timeout", kNothing},
                                     {"safety_factor", real(5)},
                                     {"skip_section_response", kFalse},
                                     {"install_exception_hook", kFalse},
                                     {"num_warmup_iterations", small(kWarmupIterations)}}) +
                               "b";
  return message(object(kData, "OkMsg") + dict({{"cfg", settings}}) + "b");
}

std::string error(std::string_view cause) {
  return message(object(kData, "ErrorMsg") + dict({{"cause", text(cause)}}) + "b");
}

std::string accepted() {
  return framed(
      "\x80\x03"
      "C\x02"
      "ok.");
}

std::string declined(std::string_view why) { return message(text(why)); }

}  // namespace elastic::progress::nvrx
