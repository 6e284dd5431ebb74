#include "rendezvous/transport/store_probe.h"

#include <string_view>
#include <utility>

namespace elastic::transport {
namespace {

constexpr std::int64_t kConnectMs = 2'000;
// VALIDATE with its magic number, then PING with a number that comes back; docs/store-protocol.md.
constexpr std::string_view kQuestion("\x00\xce\xf7\x85\x3c\x0d\xa5\x5a\xc3\x3c", 10);
constexpr std::string_view kAnswer("\xa5\x5a\xc3\x3c", 4);

}  // namespace

StoreProbe::StoreProbe(net::Loop& loop, const std::string& address, std::uint16_t port, std::function<void()> on_found)
    : on_found_(std::move(on_found)) {
  connector_ = std::make_unique<net::Connector>(loop, address, port, kConnectMs,
                                                [this](Result<std::unique_ptr<net::Stream>> stream) {
                                                  const std::unique_ptr<net::Connector> done = std::move(connector_);
                                                  if (stream) ask(std::move(*stream));
                                                });
}

void StoreProbe::ask(std::unique_ptr<net::Stream> stream) {
  stream_ = std::move(stream);
  stream_->start({.on_data =
                      [this](std::span<const std::uint8_t> bytes) {
                        heard_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                        if (heard_.size() < kAnswer.size()) return;
                        const std::unique_ptr<net::Stream> over = std::move(stream_);
                        if (heard_ != kAnswer) return;
                        const auto found = std::move(on_found_);  // it may destroy us
                        found();
                      },
                  .on_end = [this] { stream_.reset(); }});
  stream_->write(std::string(kQuestion));
}

}  // namespace elastic::transport
