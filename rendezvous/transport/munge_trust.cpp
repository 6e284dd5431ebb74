#include "rendezvous/transport/munge_trust.h"

#include <memory>
#include <utility>

#include "rendezvous/protocol/munge_messages.h"
#include "rendezvous/transport/limits.h"
#include "rendezvous/transport/random_nonce.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/local_host.h"

namespace elastic::transport {
namespace {

constexpr const char* kWhat = "munged";

// Our user id as munged sees it: from a credential that is made and opened again.
Result<uid_t> ask_who_we_are(const std::string& socket) {
  const auto credential = net::munge::encode(socket, "elastic-run", {});
  if (!credential) return std::unexpected(credential.error());
  const auto decoded = net::munge::decode(socket, *credential);
  if (!decoded) return std::unexpected(decoded.error());
  return decoded->uid;
}

}  // namespace

MungeTrust::MungeTrust(net::Loop& loop, const MungeSettings& settings, bool hosts)
    : settings_(settings),
      hosts_(hosts),
      silence_(loop),
      done_watch_(loop, thread_.done_descriptor(), [this] { thread_.run_done(); }) {}

void MungeTrust::find_out(std::function<void()> known) {
  if (known_) return known();
  waiting_.push_back(std::move(known));
  if (std::exchange(asked_, true)) return;
  silence_.start(limits::kMungeSilenceMs,
                 [this] { found(fail(kWhat, format("it has not answered in {} s", limits::kMungeSilenceMs / 1000))); });
  const auto uid = std::make_shared<Result<uid_t>>();
  thread_.post(
      kWhat, [uid, socket = settings_.socket] { *uid = ask_who_we_are(socket); }, [this, uid] { found(*uid); });
}

void MungeTrust::found(Result<uid_t> uid) {
  if (std::exchange(known_, true)) return;
  silence_.stop();
  if (uid) uid_ = *uid;
  if (!uid) why_not_ = printable(uid.error().reason);
  if (hosts_) secret_ = answers() ? protocol::munge::hex(random_nonce()) : std::string();
  log::info("munge", answers() ? std::string("munge answers: the nodes of the step authenticate each other with it")
                               : format("munge does not answer here ({}): nodes do not authenticate each other with it",
                                        why_not_));
  for (const auto& known : std::exchange(waiting_, {})) known();
}

void MungeTrust::encode(std::string payload, std::function<void(Result<std::string>)> done) {
  const auto result = std::make_shared<Result<std::string>>();
  thread_.post(
      kWhat,
      [result, payload = std::move(payload), socket = settings_.socket, uid = uid_] {
        *result = net::munge::encode(socket, payload, uid);
      },
      [result, done = std::move(done)] { done(std::move(*result)); });
}

void MungeTrust::decode(std::string credential, std::function<void(Result<net::munge::Decoded>)> done) {
  const auto result = std::make_shared<Result<net::munge::Decoded>>();
  thread_.post(
      kWhat,
      [result, credential = std::move(credential), socket = settings_.socket] {
        *result = net::munge::decode(socket, credential);
      },
      [result, done = std::move(done)] { done(std::move(*result)); });
}

}  // namespace elastic::transport
