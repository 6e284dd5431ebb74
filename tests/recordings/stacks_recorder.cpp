// Writes what is read of a Python process's memory to show its stacks, as an image that stacks_test.cpp reads again
// (stacks_images.py has the whole recipe). usage: stacks_recorder PID

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "health/stack_reader/onlooker.h"
#include "health/stacks/elf_file.h"
#include "health/stacks/mappings.h"
#include "health/stacks/python_stacks.h"

namespace elastic::stacks {
namespace {

class RecordingMemory : public Memory {
 public:
  explicit RecordingMemory(DescriptorMemory& memory) : memory_(memory) {}

  bool read(std::uint64_t address, std::span<std::uint8_t> out) override {
    if (!memory_.read(address, out)) return false;
    for (std::size_t i = 0; i < out.size(); ++i) bytes_[address + i] = out[i];
    return true;
  }
  // Each stretch of bytes that were read as a line: "memory 7f00 0102".
  void write() const {
    std::optional<std::uint64_t> next;
    for (const auto& [address, byte] : bytes_) {
      if (address != next) std::printf("%smemory %llx ", next ? "\n" : "", static_cast<unsigned long long>(address));
      std::printf("%02x", byte);
      next = address + 1;
    }
    std::printf("\n");
  }

 private:
  DescriptorMemory& memory_;
  std::map<std::uint64_t, std::uint8_t> bytes_;
};

bool record(const std::string& process, const MappedFile& file) {
  DescriptorMemory program(UniqueFd(open(file.path.c_str(), O_RDONLY | O_CLOEXEC)));
  const auto found = python_in(program);
  if (!found) return false;
  DescriptorMemory memory(UniqueFd(open(("/proc/" + process + "/mem").c_str(), O_RDONLY | O_CLOEXEC)));
  const auto version = number_at<std::uint64_t>(memory, address_in(file, *found, found->version_symbol.value_or(0)));
  const std::uint64_t runtime = address_in(file, *found, found->runtime);
  RecordingMemory recorded(memory);
  const auto stacks = python_stacks(recorded, runtime, version);
  if (!stacks) return false;
  std::printf("python %s\nruntime %llx\nversion %llx\n", stacks->version.c_str(),
              static_cast<unsigned long long>(runtime), static_cast<unsigned long long>(version.value_or(0)));
  recorded.write();
  return true;
}

}  // namespace
}  // namespace elastic::stacks

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::string process = arguments[1];
  std::ifstream maps("/proc/" + process + "/maps");
  const std::string text(std::istreambuf_iterator<char>(maps), {});
  for (const auto& file : elastic::stacks::python_files(text)) {
    if (elastic::stacks::record(process, file)) return 0;
  }
  std::fprintf(stderr, "stacks_recorder: the stacks of process %s cannot be read\n", process.c_str());
  return 1;
}
