#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/store/client.h"
#include "rendezvous/transport/claim_register.h"
#include "src/net/loop.h"
#include "src/net/names.h"

namespace elastic::transport {

// The claim of a job in the key "elastic-run/<job>/coordinator" of a PyTorch TCPStore, which the user runs. A
// connection is made for each read, and closed by forget().
class ClaimStore : public ClaimRegister {
 public:
  ClaimStore(net::Loop& loop, std::string host, std::uint16_t port, const std::string& job);

  void read(Done done) override;
  void compare_set(std::string expected, std::string desired, Done done) override;
  void forget() override;
  std::string own_address() const override { return own_address_; }
  bool loopback_is_meant() const override;
  std::string name() const override;

 private:
  using Ask = std::function<void(store::Client&)>;

  // Asks the present client, or a new one at the first address that answers.
  void with_client(Ask ask, Done done);
  void try_next();
  void answered(Result<std::string> answer);

  net::Loop& loop_;
  const std::string host_;
  const std::uint16_t port_;
  const std::string key_;  // as PyTorch's client sends it
  net::Resolver resolver_;
  std::unique_ptr<store::Client> client_;
  std::vector<std::string> addresses_;  // those left to be tried; the next one is the last
  Ask ask_;
  Done done_;
  std::string own_address_;
  std::uint64_t attempt_ = 0;
};

}  // namespace elastic::transport
