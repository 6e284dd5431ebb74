#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace elastic {

// How long others are waited for before they count as hung: a disk, the reader of our output, a process that is to
// answer. On a machine that is kept busy on purpose tests stretch it, so that what is late is not taken for hung.

// The factor that a text gives, "1" to "100"; nothing if it is none.
std::optional<int> parse_patience(std::string_view text);

// Sets the factor, 1 to 100. Must be called once, at the start of main, where it is not 1.
void set_patience(int factor);

// So many milliseconds times the factor.
std::int64_t patient_ms(std::int64_t milliseconds);

}  // namespace elastic
