#include "src/warm/packets.h"

#include "src/base/text.h"

namespace elastic::warm {
namespace {

std::optional<std::int64_t> number(const std::vector<std::string>& fields, std::size_t index) {
  return index < fields.size() ? parse_int(fields[index]) : std::nullopt;
}

}  // namespace

std::optional<Report> read_report(std::string_view packet) {
  if (packet.empty()) return {};
  std::vector<std::string> fields = split(std::string(packet), '\0');
  const char kind = packet.front();
  if (kind == 'W') {
    const auto pid = parse_int(fields.front().substr(1));
    return pid && *pid > 0 ? std::optional<Report>(Parked{static_cast<int>(*pid)}) : std::nullopt;
  }
  if (kind == 'D' && packet.size() == 1) return Forked{};
  if (kind == 'F' && fields.size() == 2) return Refused{std::move(fields[1])};
  if (kind == 'S' && fields.size() == 3) return Struck{std::move(fields[1]), std::move(fields[2])};
  const auto modules = number(fields, 1);
  const auto cpu_ms = number(fields, 2);
  const auto spared_cpu_ms = number(fields, 3);
  const auto memory_kib = number(fields, 4);
  if (kind != 'R' || fields.size() < 6 || !modules || !cpu_ms || !spared_cpu_ms || !memory_kib) return {};
  Ready ready{static_cast<int>(*modules), *cpu_ms, *spared_cpu_ms, *memory_kib, fields[5]};
  ready.places.assign(fields.begin() + 6, fields.end());
  return ready;
}

std::string park_packet(int count) { return format("P{}", count); }

std::string order_packet(std::span<const std::string> variables, std::span<const std::string> arguments) {
  std::string out = format("O{}", variables.size());
  for (const auto fields : {variables, arguments}) {
    for (const std::string& field : fields) {
      out.push_back('\0');
      out += field;
    }
  }
  return out;
}

}  // namespace elastic::warm
