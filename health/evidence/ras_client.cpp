#include "health/evidence/ras_client.h"

#include <utility>

#include "health/evidence/ras_report.h"
#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::evidence {
namespace {

const std::string kWhat = "cannot ask NCCL's RAS";
constexpr std::size_t kShownBytes = 100;

bool begins_with_word(std::string_view line, std::string_view word) { return lower(line).starts_with(word); }

}  // namespace

std::string RasClient::start() const { return "CLIENT PROTOCOL 2\n"; }

Result<std::string> RasClient::feed(std::string_view bytes) {
  std::string to_send;
  while (!bytes.empty()) {
    ELASTIC_CHECK(state_ != State::kOver);
    if (state_ == State::kReport) {
      if (received_.size() + bytes.size() > kRasBytes) {
        return give_up(format("its report has more than {} MiB", kRasBytes >> 20));
      }
      received_ += bytes;
      // Nothing follows a refusal, and the connection would stay open.
      if (begins_with_word(std::string_view(received_).substr(0, 6), "error:") &&
          received_.find('\n') != std::string::npos) {
        return give_up("it answered " + printable(trim(received_), kShownBytes));
      }
      break;
    }
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (received_.size() + part.size() > kRasLineBytes) return give_up("its answer is too long for RAS");
    received_ += part;
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    auto next = answered(trim(std::exchange(received_, {})));
    if (!next) return next;
    to_send += *next;
  }
  return to_send;
}

Result<std::string> RasClient::answered(std::string_view line) {
  const bool is_ok = lower(line) == "ok";
  const bool is_error = begins_with_word(line, "error");
  switch (state_) {
    case State::kGreeting:
      if (!begins_with_word(line, "server protocol ")) {
        return give_up(format("what answers is no RAS: {}", printable(line, kShownBytes)),
                       "look which program listens at NCCL_RAS_ADDR");
      }
      state_ = State::kTimeout;
      return format("TIMEOUT {}\n", timeout_s_);
    case State::kTimeout:
      if (!is_ok && !is_error) break;
      state_ = State::kFormat;  // where it is refused RAS has a timeout of its own
      return "SET FORMAT json\n";
    case State::kFormat:
      if (!is_ok && !is_error) break;
      state_ = State::kReport;  // where it is refused (before NCCL 2.28.7) the report is text
      return "VERBOSE STATUS\n";
    default: break;
  }
  return give_up("it answered " + printable(line, kShownBytes));
}

Result<std::string> RasClient::closed() {
  if (state_ == State::kReport && !trim(received_).empty()) {
    state_ = State::kOver;
    return std::move(received_);
  }
  return give_up(state_ == State::kReport ? "it closed the connection instead of a report"
                                          : "it closed the connection before it was asked for a report");
}

Error RasClient::late() const {
  if (state_ != State::kReport) return {kWhat, "it did not answer in time", ""};
  return {kWhat, received_.empty() ? "its report did not come in time" : "its report was not complete in time", ""};
}

std::unexpected<Error> RasClient::give_up(std::string reason, std::string remedy) {
  state_ = State::kOver;
  received_.clear();
  return fail(kWhat, std::move(reason), std::move(remedy));
}

}  // namespace elastic::evidence
