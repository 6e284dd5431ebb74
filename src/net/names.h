#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/net/loop.h"

namespace elastic::net {

// Where names are looked up. An empty member means the system's default; tests set others.
struct NameSources {
  std::string resolv_conf{};       // a file in place of /etc/resolv.conf
  std::string server{};            // "127.0.0.1:5353", in place of the name servers of that file
  bool hosts_of_variable = false;  // the file that CARES_HOSTS names, in place of /etc/hosts
};

// Looks up the addresses of hosts on the loop, by c-ares, for a static program has no getaddrinfo(). It reads the hosts
// file first, then asks the name servers, with the search domains and options of resolv.conf(5). It costs nothing
// before the first name that has to be looked up.
class Resolver {
 public:
  using OnDone = std::function<void(Result<std::vector<std::string>>)>;

  explicit Resolver(Loop& loop, NameSources sources = {});
  // Cancels all lookups, without calling back.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Looks up the numeric addresses of a name, IPv4 and IPv6, as inet_ntop() writes them, each once, in the order of
  // RFC 6724; at most limits::kAddressesOfName. A numeric address is its own answer (in
  // inet_ntop's form), and "localhost" and names under it are 127.0.0.1 and ::1; no server is asked about those. Each
  // call reads the hosts file and resolv.conf anew, for a container's may be filled late.
  //
  // `on_done` is called once, in a later turn of the loop, and may destroy the Resolver. If after `timeout_ms` only the
  // addresses of one family are known, it gets those. An error's `what` names the name, its
  // `reason` says that there is no such name, that the name server does not answer, or what is malformed.
  void resolve(const std::string& host, std::int64_t timeout_ms, OnDone on_done);

 private:
  struct Query;
  friend struct Query;

  Loop& loop_;
  NameSources sources_;
  std::vector<std::unique_ptr<Query>> queries_;
};

}  // namespace elastic::net
