#include "rendezvous/protocol/munge_messages.h"

#include <algorithm>
#include <array>
#include <vector>

#include "rendezvous/protocol/limits.h"
#include "src/base/text.h"

namespace elastic::protocol::munge {
namespace {

constexpr std::size_t kHeadBytes = kMark.size() + 4;
constexpr std::array<std::string_view, 4> kKinds = {"credential", "none", "needed", "refused"};

std::string framed(const std::string& body) {
  std::string out(kMark);
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(body.size() >> shift));
  return out + body;
}

std::size_t length_in(std::string_view head) {
  std::size_t length = 0;
  for (const char byte : head.substr(kMark.size(), 4)) length = length << 8 | static_cast<std::uint8_t>(byte);
  return length;
}

std::string payload(std::string_view side, const std::string& step, const std::string& rest) {
  return format("elastic-run {}\n{}\n{}", side, step, rest);
}

std::optional<std::string> wrong_user(const Opened& opened, std::uint32_t our_uid) {
  if (opened.uid == our_uid) return {};
  return format("it runs as uid {}, and this node as uid {}", opened.uid, our_uid);
}

// The lines of a payload of that side and step. The error says what is wrong, as a clause.
std::expected<std::vector<std::string>, std::string> lines_of(const Opened& opened, std::string_view side,
                                                              const std::string& step, std::size_t count) {
  std::vector<std::string> lines = split(opened.payload, '\n');
  if (lines.size() != count || lines[0] != format("elastic-run {}", side)) {
    return std::unexpected("its credential was made for something else");
  }
  if (lines[1] != step) {
    return std::unexpected(format("its credential is of {}, and this node is of {}", printable(lines[1]), step));
  }
  return lines;
}

}  // namespace

std::string bytes_of(const Request& request) { return framed(format("{}\n{}", request.step, request.credential)); }

std::string bytes_of(const Answer& answer) {
  const std::string_view kind = kKinds.at(static_cast<std::size_t>(answer.kind));
  return framed(format("{}\n{}", kind, answer.text.substr(0, limits::kMungeWordBytes / 2)));
}

bool Reader::add(Bytes bytes) {
  heard_.append(reinterpret_cast<const char*>(bytes.data()),
                std::min(bytes.size(), limits::kMungeWordBytes + kHeadBytes));
  const std::size_t known = std::min(heard_.size(), kMark.size());
  if (heard_.compare(0, known, kMark.substr(0, known)) != 0) return false;
  if (heard_.size() < kHeadBytes) return true;
  return length_in(heard_) <= limits::kMungeWordBytes && heard_.size() <= kHeadBytes + length_in(heard_);
}

bool Reader::complete() const { return heard_.size() >= kHeadBytes && heard_.size() == kHeadBytes + length_in(heard_); }

std::string_view Reader::body() const { return std::string_view(heard_).substr(kHeadBytes); }

std::optional<Request> Reader::request() const {
  if (!complete()) return {};
  const std::size_t end = body().find('\n');
  if (end == std::string_view::npos) return {};
  return Request{std::string(body().substr(0, end)), std::string(body().substr(end + 1))};
}

std::optional<Answer> Reader::answer() const {
  if (!complete()) return {};
  const std::size_t end = body().find('\n');
  const auto kind = std::ranges::find(kKinds, body().substr(0, end));
  if (end == std::string_view::npos || kind == kKinds.end()) return {};
  return Answer{static_cast<Answer::Kind>(kind - kKinds.begin()), std::string(body().substr(end + 1))};
}

std::string hex(const Nonce& nonce) {
  std::string out;
  for (const std::uint8_t byte : nonce) out += format("{:02x}", byte);
  return out;
}

std::string agent_payload(const std::string& step, const Nonce& nonce) { return payload("agent", step, hex(nonce)); }

std::string coordinator_payload(const std::string& step, const std::string& nonce, const std::string& secret) {
  return payload("coordinator", step, format("{}\n{}", nonce, secret));
}

std::expected<std::string, std::string> judge_agent(const Opened& opened, const std::string& step,
                                                    std::uint32_t our_uid) {
  if (auto wrong = wrong_user(opened, our_uid)) return std::unexpected(std::move(*wrong));
  auto lines = lines_of(opened, "agent", step, 3);
  if (!lines) return std::unexpected(std::move(lines.error()));
  return std::move(lines->at(2));
}

std::expected<std::string, std::string> judge_coordinator(const Opened& opened, const std::string& step,
                                                          const Nonce& nonce, std::uint32_t our_uid) {
  if (auto wrong = wrong_user(opened, our_uid)) return std::unexpected(std::move(*wrong));
  auto lines = lines_of(opened, "coordinator", step, 4);
  if (!lines) return std::unexpected(std::move(lines.error()));
  if (lines->at(2) != hex(nonce)) return std::unexpected("its credential answers another request");
  if (lines->at(3).empty()) return std::unexpected("its credential has no secret in it");
  return std::move(lines->at(3));
}

}  // namespace elastic::protocol::munge
