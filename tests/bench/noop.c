// The worker of the startup benchmark. Without arguments it ends at once. With the paths of two
// FIFOs it writes one byte to the first, and ends when it has read one byte from the second.
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 3) {
    return 0;
  }
  const int ready = open(argv[1], O_WRONLY | O_CLOEXEC);
  const int go = open(argv[2], O_RDONLY | O_CLOEXEC);
  char byte = '.';
  if (ready < 0 || go < 0 || write(ready, &byte, 1) != 1) {
    return 1;
  }
  close(ready);
  return read(go, &byte, 1) == 1 ? 0 : 1;
}
