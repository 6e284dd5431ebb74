#pragma once

#include <string>
#include <string_view>

// What our pages have in common: each is one file that needs nothing else, no script and no network.
namespace elastic {

// A text as HTML shows it, also within quoted attributes; control characters and bytes that are not
// UTF-8 as screen_text() has them.
std::string html_text(std::string_view text);

// A page up to and with <body>: light or dark as the reader's screen is, with a policy that forbids scripts and all
// that would have to be fetched. `title` is escaped already; `style` is CSS beside the common one.
std::string html_beginning(std::string_view title, std::string_view style);
std::string_view html_end();

}  // namespace elastic
