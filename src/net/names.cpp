#include "src/net/names.h"

#include <ares.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/time.h>
#include <uv.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"
#include "src/net/limits.h"

namespace elastic::net {
namespace {

constexpr std::size_t kNameBytes = 253;  // RFC 1035's bounds of a whole name and of one label
constexpr std::size_t kLabelBytes = 63;
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyz0123456789-_.";

// A name server gets a sixth of the time to answer (at most 5 s, resolv.conf's default), and twice as long at its
// second try: that leaves time for one lost packet, and for a second server where the first is dead.
constexpr std::int64_t kChances = 6;
constexpr std::int64_t kLongestChanceMs = 5000;

// An address in inet_ntop's form, with its scope; nothing if `host` is not numeric.
std::optional<std::string> numeric(const std::string& host) {
  std::array<std::uint8_t, sizeof(in6_addr)> bytes{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  const std::size_t scope = std::min(host.find('%'), host.size());
  for (const int family : {AF_INET, AF_INET6}) {
    const std::string bare = family == AF_INET6 ? host.substr(0, scope) : host;
    if (inet_pton(family, bare.c_str(), bytes.data()) != 1) continue;
    inet_ntop(family, bytes.data(), text.data(), text.size());
    return family == AF_INET6 ? text.data() + host.substr(scope) : std::string(text.data());
  }
  return {};
}

std::string numeric(const ares_addrinfo_node& node) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = node.ai_family == AF_INET
                          ? static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(node.ai_addr)->sin_addr)
                          : &reinterpret_cast<sockaddr_in6*>(node.ai_addr)->sin6_addr;
  inet_ntop(node.ai_family, bytes, text.data(), text.size());
  return text.data();
}

// Why a text that is not an address cannot be a host name; empty if it can.
std::string malformed(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.empty()) return "it is empty";
  if (host.find_first_not_of("0123456789.") == std::string_view::npos && host.contains('.')) {
    return "it is neither an IPv4 address (four numbers from 0 to 255) nor a host name";
  }
  if (host.size() > kNameBytes) return format("a host name has at most {} characters", kNameBytes);
  if (lower(host).find_first_not_of(kOfNames) != std::string::npos) {
    return host.contains(':') ? "it is neither an IPv6 address nor a host name"
                              : "a host name may contain only letters (a to z), digits, '-', '_' and dots";
  }
  for (const std::string& label : split(host, '.')) {
    if (label.empty()) return "it begins with a dot or has two dots in a row";
    if (label.size() > kLabelBytes) return format("a part between dots has at most {} characters", kLabelBytes);
  }
  return {};
}

bool is_localhost(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  const std::string name = lower(host);
  return name == "localhost" || name.ends_with(".localhost");
}

}  // namespace

// One lookup. It has a c-ares channel of its own, so that destroying it does not cancel other lookups.
struct Resolver::Query {
  Query(Resolver& of, std::string name, OnDone on_done)
      : owner(of), host(std::move(name)), done(std::move(on_done)), deadline(of.loop_), retry(of.loop_) {}
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  void ask(std::int64_t timeout_ms);
  void answer(Result<std::vector<std::string>> what);
  void finish();

 private:
  void give_up(std::int64_t timeout_ms);
  void on_result(int status, const ares_addrinfo* found);
  std::unexpected<Error> error(int status) const;
  std::string servers() const;
  void watch(int fd, bool readable, bool writable);
  void process(int readable, int writable);

  Resolver& owner;
  std::string host;
  OnDone done;
  Timer deadline;  // the time-out; then the later turn in which `done` is called
  Timer retry;     // calls c-ares for its own time-outs
  ares_channel channel = nullptr;
  std::map<int, uv_poll_t*> watches;
  std::optional<Result<std::vector<std::string>>> result;
  std::int64_t timed_out_ms = 0;  // the time-out that is over
};

Resolver::Query::~Query() {
  if (channel != nullptr) ares_destroy(channel);  // ends the watches of open sockets
  ELASTIC_CHECK(watches.empty());
}

void Resolver::Query::ask(std::int64_t timeout_ms) {
  static const int library = ares_library_init(ARES_LIB_INIT_ALL);
  ELASTIC_CHECK(library == ARES_SUCCESS);
  const NameSources& sources = owner.sources_;
  std::array<char, 3> lookups{"fb"};  // the hosts file, then the name servers, whatever nsswitch.conf says
  std::string resolv_conf = sources.resolv_conf;
  ares_options options{};
  options.timeout = static_cast<int>(std::clamp<std::int64_t>(timeout_ms / kChances, 1, kLongestChanceMs));
  options.lookups = lookups.data();
  options.resolvconf_path = resolv_conf.data();
  options.sock_state_cb = [](void* self, ares_socket_t fd, int readable, int writable) {
    static_cast<Query*>(self)->watch(fd, readable != 0, writable != 0);
  };
  options.sock_state_cb_data = this;
  const int given =
      ARES_OPT_TIMEOUTMS | ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB | (resolv_conf.empty() ? 0 : ARES_OPT_RESOLVCONF);
  int status = ares_init_options(&channel, &options, given);
  if (status != ARES_SUCCESS) channel = nullptr;
  if (status == ARES_SUCCESS && !sources.server.empty()) {
    status = ares_set_servers_ports_csv(channel, sources.server.c_str());
  }
  if (status != ARES_SUCCESS) return answer(error(status));

  deadline.start(timeout_ms, [this, timeout_ms] { give_up(timeout_ms); });
  ares_addrinfo_hints hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = sources.hosts_of_variable ? ARES_AI_ENVHOSTS : 0;
  const auto ready = [](void* self, int how, int, ares_addrinfo* found) {
    static_cast<Query*>(self)->on_result(how, found);
    if (found != nullptr) ares_freeaddrinfo(found);
  };
  ares_getaddrinfo(channel, host.c_str(), nullptr, &hints, ready, this);
  process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

// When it is cancelled, c-ares passes on the addresses of one family if the other's answer has not arrived.
void Resolver::Query::give_up(std::int64_t timeout_ms) {
  timed_out_ms = timeout_ms;
  ares_cancel(channel);
  if (!result) answer(error(ARES_ETIMEOUT));
}

void Resolver::Query::on_result(int status, const ares_addrinfo* found) {
  if (result || status == ARES_EDESTRUCTION) return;
  std::vector<std::string> addresses;
  if (status == ARES_SUCCESS && found != nullptr) {
    for (const ares_addrinfo_node* node = found->nodes; node != nullptr; node = node->ai_next) {
      if (node->ai_family != AF_INET && node->ai_family != AF_INET6) continue;
      std::string address = numeric(*node);
      if (std::ranges::find(addresses, address) != addresses.end()) continue;
      if (addresses.size() < limits::kAddressesOfName) addresses.push_back(std::move(address));
    }
  }
  if (!addresses.empty()) return answer(std::move(addresses));
  answer(error(status == ARES_SUCCESS ? ARES_ENODATA : status));
}

// The result is passed on in a later turn: this runs within c-ares, where its channel must not be destroyed.
void Resolver::Query::answer(Result<std::vector<std::string>> what) {
  result = std::move(what);
  retry.stop();
  deadline.start(0, [this] { finish(); });
}

void Resolver::Query::finish() {
  auto& all = owner.queries_;
  const auto place = std::ranges::find_if(all, [this](const auto& one) { return one.get() == this; });
  ELASTIC_CHECK(place != all.end());
  std::unique_ptr<Query> self = std::move(*place);
  all.erase(place);
  const OnDone tell = std::move(done);
  Result<std::vector<std::string>> what = std::move(*result);
  self.reset();
  tell(std::move(what));
}

std::unexpected<Error> Resolver::Query::error(int status) const {
  std::string what = format("cannot look up the address of {}", printable(host));
  constexpr auto kCheckServer =
      "check the network and /etc/resolv.conf, or give the numeric address or a line in /etc/hosts";
  switch (status) {
    case ARES_ENOTFOUND:
      return fail(std::move(what), "no such name", "check it, or give the numeric address or a line in /etc/hosts");
    case ARES_ENODATA:
      return fail(std::move(what), "the name exists, but has no address",
                  "check it, or give the numeric address or a line in /etc/hosts");
    case ARES_ETIMEOUT:
    case ARES_ECANCELLED:
      return fail(std::move(what),
                  format("the name server ({}) does not answer{}", servers(),
                         timed_out_ms > 0 ? format(" within {} ms", timed_out_ms) : ""),
                  kCheckServer);
    case ARES_ECONNREFUSED:  // c-ares reports a server's own failure like this, too
    case ARES_ESERVFAIL:
    case ARES_EREFUSED:
    case ARES_ENOTIMP:
      return fail(std::move(what), format("the name server ({}) cannot be reached, or has failed", servers()),
                  kCheckServer);
    default: return fail(std::move(what), lower(ares_strerror(status)), kCheckServer);
  }
}

// The servers that are asked: "10.0.0.2, [fd00::1]:5353".
std::string Resolver::Query::servers() const {
  ares_addr_port_node* list = nullptr;
  std::vector<std::string> texts;
  if (channel != nullptr && ares_get_servers_ports(channel, &list) == ARES_SUCCESS) {
    for (const ares_addr_port_node* one = list; one != nullptr; one = one->next) {
      std::array<char, INET6_ADDRSTRLEN> text{};
      inet_ntop(one->family, &one->addr, text.data(), text.size());
      const bool plain = one->udp_port == 0 || one->udp_port == 53;
      texts.push_back(plain                     ? std::string(text.data())
                      : one->family == AF_INET6 ? format("[{}]:{}", text.data(), one->udp_port)
                                                : format("{}:{}", text.data(), one->udp_port));
    }
    ares_free_data(list);
  }
  return texts.empty() ? "none is set" : join(texts, ", ");
}

// Watches one of c-ares' sockets as it asks; with neither flag the watch ends, for c-ares closes the socket next.
void Resolver::Query::watch(int fd, bool readable, bool writable) {
  const auto known = watches.find(fd);
  if (!readable && !writable) {
    if (known == watches.end()) return;
    uv_poll_t* poll = known->second;
    watches.erase(known);
    poll->data = nullptr;
    uv_poll_stop(poll);
    uv_close(reinterpret_cast<uv_handle_t*>(poll),
             [](uv_handle_t* closed) { delete reinterpret_cast<uv_poll_t*>(closed); });
    return;
  }
  uv_poll_t* poll = known == watches.end() ? new uv_poll_t{} : known->second;
  if (known == watches.end()) {
    if (uv_poll_init(owner.loop_.native(), poll, fd) != 0) {
      delete poll;  // without a watch the lookup times out, as if the server did not answer
      return;
    }
    poll->data = this;
    watches.emplace(fd, poll);
  }
  const auto on_event = [](uv_poll_t* handle, int status, int events) {
    auto* self = static_cast<Query*>(handle->data);
    uv_os_fd_t ready = -1;
    if (self == nullptr || uv_fileno(reinterpret_cast<uv_handle_t*>(handle), &ready) != 0) return;
    // On an error c-ares has to read and write to find it.
    const bool both = status != 0;
    self->process(both || (events & UV_READABLE) != 0 ? ready : ARES_SOCKET_BAD,
                  both || (events & UV_WRITABLE) != 0 ? ready : ARES_SOCKET_BAD);
  };
  const int events = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0);
  ELASTIC_CHECK(uv_poll_start(poll, events, on_event) == 0);
}

// Lets c-ares read, write and handle its time-outs.
void Resolver::Query::process(int readable, int writable) {
  ares_process_fd(channel, readable, writable);
  if (result) return;
  timeval wait{};
  if (ares_timeout(channel, nullptr, &wait) == nullptr) return retry.stop();
  const std::int64_t milliseconds = wait.tv_sec * 1000 + (wait.tv_usec + 999) / 1000;
  retry.start(milliseconds, [this] { process(ARES_SOCKET_BAD, ARES_SOCKET_BAD); });
}

Resolver::Resolver(Loop& loop, NameSources sources) : loop_(loop), sources_(std::move(sources)) {}

Resolver::~Resolver() = default;

void Resolver::resolve(const std::string& host, std::int64_t timeout_ms, OnDone on_done) {
  ELASTIC_CHECK(timeout_ms > 0);
  queries_.push_back(std::make_unique<Query>(*this, host, std::move(on_done)));
  Query& query = *queries_.back();
  if (const auto address = numeric(host)) return query.answer(std::vector{*address});
  if (is_localhost(host)) return query.answer(std::vector<std::string>{"127.0.0.1", "::1"});
  if (const std::string reason = malformed(host); !reason.empty()) {
    return query.answer(fail(format("cannot look up the address of '{}'", printable(host)), reason,
                             "give the name of a host or a numeric address"));
  }
  query.ask(timeout_ms);
}

}  // namespace elastic::net
