#include "src/output/terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>

namespace elastic::output {

Result<Terminal> make_terminal() {
  Terminal made;
  made.ours = UniqueFd(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!made.ours) return fail_errno("cannot make a terminal for a worker's output (/dev/ptmx)", errno);
  const int ours = made.ours.get();
  int unlocked = 0;
  if (ioctl(ours, TIOCSPTLCK, &unlocked) != 0) return fail_errno("cannot unlock a worker's terminal", errno);
  // It is not opened by name, for /dev/pts may be another mount.
  made.workers = UniqueFd(ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (!made.workers || tcgetattr(made.workers.get(), &settings) != 0) {
    return fail_errno("cannot open a worker's terminal", errno);
  }
  settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // our own terminal translates line ends
  settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  tcsetattr(made.workers.get(), TCSANOW, &settings);
  copy_terminal_size(ours);
  return made;
}

void copy_terminal_size(int ours) {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0) ioctl(ours, TIOCSWINSZ, &size);
}

std::size_t terminal_columns() {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col == 0 ? kUsual : size.ws_col;
}

bool is_in_foreground(pid_t pid) {
  const pid_t group = getpgid(pid);
  return group > 0 && tcgetpgrp(STDERR_FILENO) == group;
}

}  // namespace elastic::output
