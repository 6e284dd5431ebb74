// generate_docs DIRECTORY: brings man/elastic-run.1 and the generated part of docs/command-line.md
// below DIRECTORY up to date with the table of flags. scripts/generate-docs runs it on the source.

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "cli/help.h"
#include "src/base/read_file.h"
#include "src/base/result.h"

namespace {

using namespace elastic;

constexpr std::string_view kBegin = "<!-- begin: made by scripts/generate-docs, do not edit -->\n";
constexpr std::string_view kEnd = "<!-- end -->\n";

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return fail("cannot write " + path, "its directory is not there, or not writable");
  return {};
}

// The page with the text between its two marks replaced.
Result<std::string> with_generated_part(const std::string& page, const std::string& path) {
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd, begin == std::string::npos ? 0 : begin);
  if (begin == std::string::npos || end == std::string::npos) {
    return fail("cannot find the generated part of " + path, "the two marks are not there");
  }
  return page.substr(0, begin + kBegin.size()) + cli::reference_page() + page.substr(end);
}

Status generate(const std::string& directory) {
  if (Status status = write_file(directory + "/man/elastic-run.1", cli::man_page()); !status) {
    return status;
  }
  const std::string path = directory + "/docs/command-line.md";
  const auto before = read_file(path, SIZE_MAX);
  if (!before) return fail("cannot read " + path, "it is not there, or not readable");
  const Result<std::string> after = with_generated_part(*before, path);
  if (!after) return std::unexpected(after.error());
  return write_file(path, *after);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: generate_docs DIRECTORY\n", stderr);
    return 2;
  }
  const Status status = generate(argv[1]);
  if (status) return 0;
  std::fprintf(stderr, "generate_docs: error: %s\n", status.error().text().c_str());
  return 1;
}
