#include "health/stacks/mappings.h"

#include <doctest/doctest.h>

using namespace elastic::stacks;

TEST_CASE("the program and libraries that are named like Python are looked at, each once, the named ones first") {
  const auto files = python_files(
      "5500-5600 r--p 00000000 fe:01 7                  /opt/my app\n"
      "5600-5700 r-xp 00001000 fe:01 7                  /opt/my app\n"
      "5700-5800 rw-p 00000000 00:00 0                  [heap]\n"
      "7f00-7f10 r--p 00002000 fe:01 9                  /usr/lib/libpython3.12.so.1.0 (deleted)\n"
      "7f10-7f20 r-xp 00003000 fe:01 9                  /usr/lib/libpython3.12.so.1.0 (deleted)\n"
      "7f20-7f30 r--p 00000000 fe:01 8                  /usr/lib/libc.so.6\n"
      "7f30-7f40 r--p 00000000 fe:01 6                  /usr/lib/libtorch_python.so\n");
  REQUIRE(files.size() == 2);
  CHECK(files[0] == MappedFile{.path = "/usr/lib/libpython3.12.so.1.0",
                               .start = 0x7f00,
                               .offset = 0x2000,
                               .identity = "fe:01 9",
                               .is_gone = true});
  CHECK(files[1] == MappedFile{.path = "/opt/my app", .start = 0x5500, .identity = "fe:01 7"});
  CHECK(address_in(files[0], {.first_address = 0x1000, .first_offset = 0, .runtime = 0}, 0x9000) == 0xdf00);
}

TEST_CASE("lines that are damaged or of no file are passed over, and four files are enough") {
  CHECK(python_files("").empty());
  CHECK(python_files("x\n\n-\n7f00-7f10 r--p zz fe:01 9 /usr/bin/python3\n5500 r--p 0 0:0 0\n").empty());
  std::string many;
  for (const char* inode : {"1", "2", "3", "4", "5"}) {
    many += std::string("7f00-7f10 r--p 00000000 fe:01 ") + inode + " /python" + inode + "\n";
  }
  CHECK(python_files(many).size() == 4);
}
