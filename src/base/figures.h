#pragma once

#include <string>

// Numbers as people read them.
namespace elastic {

inline constexpr double kKib = 1024;
inline constexpr double kMib = 1024 * kKib;
inline constexpr double kGib = 1024 * kMib;

// With one digit after the point, or none where it says nothing: "1.5", "64".
std::string short_number(double value);

// "79.6 GiB", "512 MiB", "17 bytes".
std::string bytes_text(double bytes);

}  // namespace elastic
