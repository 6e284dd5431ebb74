#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/net/loop.h"

namespace elastic::net {

// Where names are looked up; what is empty is as the system has it. For tests.
struct NameSources {
  std::string resolv_conf{};       // a file in place of /etc/resolv.conf
  std::string server{};            // "127.0.0.1:5353", in place of the name servers of that file
  bool hosts_of_variable = false;  // the file that CARES_HOSTS names, in place of /etc/hosts
};

// Looks up the addresses of hosts on the loop, by c-ares: a static program has no getaddrinfo(). The hosts
// file first, then the name servers, with the search domains and options of resolv.conf(5). Costs nothing
// before the first name that has to be looked up.
class Resolver {
 public:
  using OnDone = std::function<void(Result<std::vector<std::string>>)>;

  explicit Resolver(Loop& loop, NameSources sources = {});
  // Calls back nobody.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // The numeric addresses of a name, IPv4 and IPv6, as inet_ntop() writes them, each once, those first that
  // RFC 6724 says to try first; at most limits::kAddressesOfName. A numeric address is its own answer (in
  // inet_ntop's form), "localhost" and names under it are 127.0.0.1 and ::1; nobody is asked about those. Each
  // call reads the hosts file and resolv.conf anew: a container's may be filled late.
  //
  // `on_done` is called once, in a later turn of the loop; the Resolver may end in it. After `timeout_ms` with
  // the addresses of one family, if the other's are all that is missing. An error's `what` names the name, its
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
