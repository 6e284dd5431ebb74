#include "src/base/figures.h"

#include "src/base/text.h"

namespace elastic {

std::string short_number(double value) {
  std::string text = format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

std::string bytes_text(double bytes) {
  if (bytes >= kGib) return short_number(bytes / kGib) + " GiB";
  if (bytes >= kMib) return short_number(bytes / kMib) + " MiB";
  if (bytes >= kKib) return short_number(bytes / kKib) + " KiB";
  return format("{:.0f} bytes", bytes);
}

}  // namespace elastic
