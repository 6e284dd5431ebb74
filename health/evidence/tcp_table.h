#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace elastic::evidence {

// Reads the text of /proc/net/tcp or /proc/net/tcp6. Calls `on_socket` for each socket with its own address and port,
// as with_port() has them ("127.0.0.1:40312", "[::1]:40312", an IPv4 address never in mapped form), and its inode.
// Lines of another form are passed over.
void read_tcp_table(std::string_view text, const std::function<void(std::string own, std::uint64_t inode)>& on_socket);

// The inode of a socket, from the target of a link in /proc/PID/fd: 17 of "socket:[17]"; 0: it is none.
std::uint64_t socket_inode(std::string_view link);

}  // namespace elastic::evidence
