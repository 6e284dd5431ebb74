#include "src/report/xid.h"

#include <charconv>

#include "src/base/screen_text.h"

namespace elastic::report {
namespace {

struct Entry {
  int number;
  XidWeight weight;
  std::string_view meaning;
};

// The meanings are those of NVIDIA's Xid documentation, shortened.
constexpr Entry kXids[] = {
    {13, XidWeight::kProgram, "an exception in the graphics engine, most often an access out of bounds by a kernel"},
    {31, XidWeight::kProgram, "a page fault of the GPU's memory, most often an illegal address used by a kernel"},
    {43, XidWeight::kProgram, "the GPU stopped processing after an error of this program"},
    {45, XidWeight::kConsequence, "the driver removed the program from the GPU after an earlier error or a kill"},
    {48, XidWeight::kHardware, "a double-bit ECC error: GPU memory has failed"},
    {62, XidWeight::kHardware, "the GPU's internal microcontroller has halted"},
    {63, XidWeight::kHardware, "a failing page or row of GPU memory was recorded for retirement or remapping"},
    {64, XidWeight::kHardware, "a failing page or row of GPU memory could not be retired or remapped"},
    {74, XidWeight::kHardware, "an error of an NVLink connection"},
    {79, XidWeight::kHardware, "the GPU has fallen off the bus: the host cannot reach it any more"},
    {92, XidWeight::kHardware, "a high rate of single-bit ECC errors"},
    {94, XidWeight::kHardware, "a contained ECC error: this program lost its GPU memory, others did not"},
    {95, XidWeight::kHardware, "an uncontained ECC error: the GPU has to be reset"},
    {119, XidWeight::kHardware, "the GPU's system processor (GSP) did not answer in time"},
    {120, XidWeight::kHardware, "an error of the GPU's system processor (GSP)"},
};

// The number at the beginning of `text`; none if there is no number or it is too large.
std::optional<int> leading_number(std::string_view text) {
  int number = 0;
  if (text.empty() || text.front() == '-') return {};
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) return {};
  return number;
}

}  // namespace

std::optional<Xid> xid_of(std::string_view line) {
  constexpr std::string_view kMark = "NVRM: Xid (";
  constexpr std::string_view kEnd = "): ";
  const std::size_t mark = line.find(kMark);
  if (mark == std::string_view::npos) return {};
  const std::size_t begin = mark + kMark.size();
  const std::size_t end = line.find(kEnd, begin);
  if (end == std::string_view::npos) return {};
  const std::string_view rest = line.substr(end + kEnd.size());
  const auto number = leading_number(rest);
  if (!number) return {};
  Xid xid{.number = *number,
          .meaning = "an error of a GPU that NVIDIA's driver reported",
          .device = std::string(line.substr(begin, end - begin)),
          .line = std::string(line)};
  for (const Entry& entry : kXids) {
    if (entry.number != xid.number) continue;
    xid.weight = entry.weight;
    xid.meaning = entry.meaning;
  }
  return xid;
}

std::optional<Xid> worst_xid(std::string_view kernel_log) {
  std::optional<Xid> worst;
  for (const std::string_view line : lines_of(kernel_log)) {
    auto xid = xid_of(line);
    if (xid && (!worst || xid->weight < worst->weight)) worst = std::move(xid);
  }
  return worst;
}

}  // namespace elastic::report
