#include "src/base/html.h"

#include "src/base/screen_text.h"
#include "src/base/text.h"

namespace elastic {
namespace {

constexpr std::string_view kStyle =
    R"(body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em;
       color: #1c2024; background: #fff; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin-top: 2em; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .25em .8em .25em 0;
       border-bottom: 1px solid #ccc; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.quiet { color: #666; } svg text { font: 12px system-ui, sans-serif; fill: #333; }
@media (prefers-color-scheme: dark) {
  body { color: #e4e4e2; background: #17191b; } th, td { border-color: #444; }
  .quiet { color: #aaa; } svg text { fill: #ccc; }
}
)";

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : screen_text(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string html_beginning(std::string_view title, std::string_view style) {
  return format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<style>\n{}{}</style>\n<title>{}</title>\n</head>\n<body>\n",
      kStyle, style, title);
}

std::string_view html_end() { return "</body>\n</html>\n"; }

}  // namespace elastic
