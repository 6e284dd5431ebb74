#pragma once

#include <string>

// Formats numbers for people.
namespace elastic {

inline constexpr double kKib = 1024;
inline constexpr double kMib = 1024 * kKib;
inline constexpr double kGib = 1024 * kMib;

// One digit after the point, or none where it is 0: "1.5", "64".
std::string short_number(double value);

// "79.6 GiB", "512 MiB", "17 bytes".
std::string bytes_text(double bytes);

}  // namespace elastic
