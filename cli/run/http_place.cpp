#include "cli/run/http_place.h"

#include <charconv>

namespace elastic::run {

std::optional<HttpPlace> place_of(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {};
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || host.contains(':') != is_bracketed) return {};
  HttpPlace out{.host = std::string(host)};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (error != std::errc() || end != port.data() + port.size() || out.port == 0) return {};
  return out;
}

std::optional<HttpPlace> place_of_url(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return {};
  url.remove_prefix(kScheme.size());
  return place_of(url.substr(0, url.find('/')));
}

}  // namespace elastic::run
