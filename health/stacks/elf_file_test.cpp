#include "health/stacks/elf_file.h"

#include <doctest/doctest.h>

#include <vector>

#include "health/stacks/elf_test_support.h"
#include "src/base/test_random.h"

using namespace elastic;
using namespace elastic::stacks;

TEST_CASE("an ELF file says where Python's runtime and version are") {
  const std::vector<std::uint8_t> bytes = small_elf_file();
  TextMemory file(bytes);
  const auto found = python_in(file);
  REQUIRE(found);
  CHECK(found->runtime == 0x55555);
  CHECK(found->version_symbol == 0x77777);
  CHECK(found->first_address == 0x400000);
}

TEST_CASE("a file that is no ELF file, is cut, or has no such section is refused") {
  std::vector<std::uint8_t> bytes = small_elf_file();
  for (std::size_t size = 0; size < 376; size += 8) {
    TextMemory cut{std::span(bytes).first(size)};
    CHECK(!python_in(cut));
  }
  bytes[377] = 'x';
  TextMemory other(bytes);
  CHECK(!python_in(other));
}

TEST_CASE("random damage of an ELF file does no harm") {
  TestRandom random(1);
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::uint8_t> bytes = small_elf_file();
    for (int damage = 0; damage < 3; ++damage) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    TextMemory file(bytes);
    const auto found = python_in(file);
    if (found && found->version_symbol) CHECK(found->runtime != ~std::uint64_t{0});
  }
}
