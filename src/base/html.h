#pragma once

#include <string>
#include <string_view>

// The parts that all our HTML pages share. Each page is one file that needs no script and no network.
namespace elastic {

// Escapes a text for HTML, also within quoted attributes; control characters and bytes that are not
// UTF-8 are replaced as by screen_text().
std::string html_text(std::string_view text);

// The beginning of a page, up to and including <body>. It is light or dark as the reader's screen is, and its policy
// forbids scripts and everything that would have to be fetched. `title` must be escaped; `style` is additional CSS.
std::string html_beginning(std::string_view title, std::string_view style);
std::string_view html_end();

}  // namespace elastic
