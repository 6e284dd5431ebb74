#include "cli/run/guardian_orders.h"

#include <unistd.h>

#include <utility>
#include <vector>

#include "cli/run/job_coordinator.h"
#include "rendezvous/agent/lifecycle.h"
#include "rendezvous/agent/link.h"
#include "src/process/death_notice.h"

namespace elastic::run {
namespace {

// How long sending the death notice may take.
constexpr std::int64_t kDeathNoticeMs = 1000;

std::vector<process::SocketAddress> socket_addresses(const std::vector<JobCoordinator::Address>& listeners) {
  std::vector<process::SocketAddress> out;
  for (const JobCoordinator::Address& each : listeners) {
    if (const auto address = process::socket_address(each.address, each.port)) out.push_back(*address);
  }
  return out;
}

}  // namespace

struct GuardianOrders::DeathNotice {
  protocol::RoundNumber round = 0;
  std::vector<JobCoordinator::Address> to = {};  // empty: to nobody
  protocol::Incarnation incarnation = 0;
  protocol::Term term = 0;
  bool operator==(const DeathNotice&) const = default;
};

GuardianOrders::GuardianOrders(net::Loop& loop, process::GuardianChannel guardian, std::string job, Handlers handlers)
    : job_(std::move(job)),
      pid_(getppid()),
      guardian_(loop, std::move(guardian),
                {.on_signal = std::move(handlers.on_signal), .on_lost = [this, on_lost = std::move(handlers.on_lost)] {
                   is_lost_ = true;
                   on_lost(pid_);
                 }}) {}

GuardianOrders::~GuardianOrders() = default;

void GuardianOrders::begin_round(protocol::RoundNumber round, const agent::Link& link,
                                 const JobCoordinator& coordinator) {
  death_notice_ = std::make_unique<DeathNotice>(DeathNotice{.round = round});
  renew_death_notice(link, coordinator);
}

void GuardianOrders::renew(const agent::Lifecycle& lifecycle, const agent::Link& link,
                           const JobCoordinator& coordinator) {
  renew_lease(lifecycle, link);
  renew_death_notice(link, coordinator);
}

// While this process is stopped, or after it was killed, the guardian kills workers whose lease is over.
void GuardianOrders::renew_lease(const agent::Lifecycle& lifecycle, const agent::Link& link) {
  const auto lease_ms = lifecycle.needs_lease() ? link.lease_until_ms() : std::nullopt;
  if (lease_ms == std::exchange(lease_ms_, lease_ms)) return;
  guardian_.set_lease(lease_ms);
}

// When this process is killed, the guardian ends the workers and tells the coordinator, at the address that it is given
// here. A coordinator in this process is killed with it, and the next leaders are told.
void GuardianOrders::renew_death_notice(const agent::Link& link, const JobCoordinator& coordinator) {
  if (!death_notice_ || !link.attached()) return;
  const DeathNotice word{.round = death_notice_->round,
                         .to = coordinator.listeners(link),
                         .incarnation = link.own_incarnation(),
                         .term = link.term()};
  if (word == std::exchange(*death_notice_, word)) return;
  death_notice_bytes_ =
      protocol::node_is_empty_frame({job_, link.agent(), word.incarnation, word.term}, word.round, link.secret());
  guardian_.set_death_notice(socket_addresses(word.to), death_notice_bytes_);
}

void GuardianOrders::end_round() {
  guardian_.send({process::GuardianMessage::Kind::kRoundOver, 0});
  if (death_notice_) guardian_.set_death_notice({}, {});
  if (!is_lost_) death_notice_.reset();
}

// A guardian that is lost sends nothing, and this node's processes have ended: the launcher sends the notice itself.
void GuardianOrders::finish(bool left_behind) const {
  if (!is_lost_ || left_behind || !death_notice_) return;
  process::send_notice({socket_addresses(death_notice_->to), death_notice_bytes_}, kDeathNoticeMs);
}

}  // namespace elastic::run
