#include "src/output/lines/line_assembler.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/text.h"

namespace elastic::output {
namespace {

// The memory of a long line is freed, for of thousands of streams few are in the middle of one.
constexpr std::size_t kKeptCapacity = 1024;

void clear(std::string& rest) {
  if (rest.capacity() > kKeptCapacity) {
    std::string().swap(rest);
  } else {
    rest.clear();
  }
}

}  // namespace

std::string line_prefix(std::string_view template_text, const PrefixValues& values) {
  const std::string rank = format("{}", values.rank);
  const std::string local_rank = format("{}", values.local_rank);
  return expand_macros(
      template_text,
      {{"role_name", values.role_name}, {"rank", rank}, {"local_rank", local_rank}, {"hostname", values.hostname}},
      TwoDollars::kOne);
}

LineAssembler::LineAssembler(std::string prefix, std::size_t max_line_bytes)
    : prefix_(std::move(prefix)), max_line_bytes_(max_line_bytes) {
  ELASTIC_CHECK(max_line_bytes_ > 0);
}

void LineAssembler::push(std::string_view input, std::string& out) {
  const bool has_returns = input.find('\r') != std::string_view::npos;
  while (!input.empty()) {
    const std::size_t end = input.find('\n');
    if (end == std::string_view::npos) {
      return keep(has_returns ? push_returns(input, out) : input, out);
    }
    const std::string_view line = input.substr(0, end);
    if (has_returns || !rest_.empty() || ended_early_ || end > max_line_bytes_) {
      end_line(has_returns ? push_returns(line, out) : line, out);
    } else {
      // This is the usual case.
      out.append(prefix_);
      out.append(input.data(), end + 1);
    }
    input.remove_prefix(end + 1);
  }
}

// Appends the lines that the '\r's in a text without '\n' end. Returns the text behind the last of them.
std::string_view LineAssembler::push_returns(std::string_view text, std::string& out) {
  for (std::size_t end; (end = text.find('\r')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    if (end == 0 && rest_.empty()) continue;
    end_line(text.substr(0, end), out);
    ended_early_ = true;
  }
  return text;
}

// Adds to the incomplete line; where that gets too long, whole pieces of it are appended to `out`.
void LineAssembler::keep(std::string_view text, std::string& out) {
  while (rest_.size() + text.size() > max_line_bytes_) {
    const std::size_t taken = max_line_bytes_ - rest_.size();
    out.append(prefix_).append(rest_).append(text.substr(0, taken)).push_back('\n');
    clear(rest_);
    text.remove_prefix(taken);
  }
  rest_.append(text);
}

void LineAssembler::end_line(std::string_view text, std::string& out) {
  if (text.empty() && rest_.empty() && std::exchange(ended_early_, false)) return;
  keep(text, out);
  ended_early_ = false;
  out.append(prefix_).append(rest_).push_back('\n');
  clear(rest_);
}

void LineAssembler::flush(std::string& out) {
  if (rest_.empty()) return;
  end_line({}, out);
  ended_early_ = true;
}

PlainAssembler::PlainAssembler(std::size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {
  ELASTIC_CHECK(max_line_bytes_ > 0);
}

void PlainAssembler::push(std::string_view input, std::string& out) {
  const std::size_t last = input.find_last_of("\r\n");
  if (last != std::string_view::npos) {
    flush(out);
    out.append(input.substr(0, last + 1));
    input.remove_prefix(last + 1);
  }
  rest_.append(input);
  if (rest_.size() > max_line_bytes_) flush(out);
}

void PlainAssembler::flush(std::string& out) {
  out.append(rest_);
  clear(rest_);
}

LineFilter::LineFilter(std::vector<std::string> parts) : parts_(std::move(parts)) {
  // One part that is in every line makes the others needless.
  if (std::ranges::find(parts_, std::string()) != parts_.end()) parts_ = {std::string()};
}

bool LineFilter::matches(std::string_view line) const {
  return std::ranges::any_of(parts_,
                             [&](const std::string& part) { return line.find(part) != std::string_view::npos; });
}

void LineFilter::copy_matching(std::string_view lines, std::size_t prefix_bytes, std::string& out) const {
  if (!is_given()) return;
  while (!lines.empty()) {
    ELASTIC_CHECK(lines.size() > prefix_bytes);
    const std::size_t end = lines.find('\n', prefix_bytes);
    ELASTIC_CHECK(end != std::string_view::npos);
    if (matches(lines.substr(prefix_bytes, end - prefix_bytes))) {
      out.append(lines.substr(0, end + 1));
    }
    lines.remove_prefix(end + 1);
  }
}

}  // namespace elastic::output
