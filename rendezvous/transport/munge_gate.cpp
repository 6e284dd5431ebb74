#include "rendezvous/transport/munge_gate.h"

#include <utility>

#include "rendezvous/transport/limits.h"
#include "src/base/log.h"
#include "src/base/text.h"

namespace elastic::transport {

using protocol::munge::Answer;

void MungeGate::take_connection(std::unique_ptr<net::Stream> stream, std::span<const std::uint8_t> bytes) {
  if (visits_.size() >= limits::kMungeVisits) return;  // the connection is closed, and the node tries again
  const std::uint64_t id = ++last_;
  Visit& visit = visits_[id];
  visit.peer = stream->peer_address();
  visit.stream = std::move(stream);
  visit.end = std::make_unique<net::Timer>(loop_);
  visit.end->start(limits::kMungeVisitMs, [this, id] { visits_.erase(id); });
  visit.stream->start({.on_data = [this, id](std::span<const std::uint8_t> more) { read(id, more); },
                       .on_end = [this, id] { visits_.erase(id); }});
  read(id, bytes);
}

void MungeGate::read(std::uint64_t id, std::span<const std::uint8_t> bytes) {
  const auto found = visits_.find(id);
  if (found == visits_.end()) return;
  Visit& visit = found->second;
  if (visit.asked || !visit.reader.add(bytes)) {
    visits_.erase(found);
    return;
  }
  if (!visit.reader.complete()) return;
  visit.asked = true;
  const auto request = visit.reader.request();
  if (!request) {
    visits_.erase(found);
    return;
  }
  const std::string& step = trust_.settings().step;
  if (request->step != step) {
    return refuse(id, format("it is of {}, and the coordinator is of {}", printable(request->step), step));
  }
  if (request->credential.empty() && trust_.answers()) {
    log::warning("munge",
                 format("the node at {} was refused: munge does not answer there, and it does here", visit.peer));
    return answer(id, {Answer::Kind::kNeeded});
  }
  if (!trust_.answers()) return answer(id, {Answer::Kind::kNone});
  trust_.decode(request->credential,
                [this, id, here = std::weak_ptr<bool>(here_)](Result<net::munge::Decoded> decoded) {
                  if (!here.expired()) judge(id, decoded);
                });
}

void MungeGate::judge(std::uint64_t id, const Result<net::munge::Decoded>& decoded) {
  if (!decoded) return refuse(id, printable(decoded.error().reason));
  const std::string& step = trust_.settings().step;
  const auto nonce = protocol::munge::judge_agent({decoded->payload, decoded->uid}, step, trust_.uid());
  if (!nonce) return refuse(id, nonce.error());
  trust_.encode(protocol::munge::coordinator_payload(step, *nonce, trust_.secret().value_or("")),
                [this, id, here = std::weak_ptr<bool>(here_)](Result<std::string> credential) {
                  if (here.expired()) return;
                  if (!credential) return refuse(id, printable(credential.error().reason));
                  answer(id, {Answer::Kind::kCredential, std::move(*credential)});
                });
}

void MungeGate::refuse(std::uint64_t id, const std::string& reason) {
  const auto found = visits_.find(id);
  if (found == visits_.end()) return;
  log::warning("munge", format("the node at {} was refused by munge: {}", found->second.peer, reason));
  answer(id, {Answer::Kind::kRefused, reason});
}

void MungeGate::answer(std::uint64_t id, const Answer& answer) {
  const auto found = visits_.find(id);
  if (found == visits_.end()) return;
  std::unique_ptr<net::Stream> stream = std::move(found->second.stream);
  visits_.erase(found);
  stream->write(protocol::munge::bytes_of(answer));
  lingering_.part(std::move(stream));
}

}  // namespace elastic::transport
