/* Loaded before the C library (LD_PRELOAD): whoever asks for another machine is written down and refused. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void write_down(const char *call, const char *name) {
  const char *path = getenv("RECSYS_NETWORK_LOG");
  FILE *log = path ? fopen(path, "a") : NULL;
  if (log) {
    fprintf(log, "%s %s\n", call, name);
    fclose(log);
  }
}

/* Whether an address is of another machine; local sockets and loopback are not. */
static int refused(const char *call, const struct sockaddr *address) {
  char name[INET6_ADDRSTRLEN] = "";
  if (address && address->sa_family == AF_INET) {
    const struct in_addr *four = &((const struct sockaddr_in *)address)->sin_addr;
    if (ntohl(four->s_addr) >> 24 == 127 || four->s_addr == 0) return 0;
    inet_ntop(AF_INET, four, name, sizeof name);
  } else if (address && address->sa_family == AF_INET6) {
    const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;
    if (IN6_IS_ADDR_LOOPBACK(six) || IN6_IS_ADDR_UNSPECIFIED(six)) return 0;
    if (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127) return 0;
    inet_ntop(AF_INET6, six, name, sizeof name);
  } else {
    return 0;
  }
  write_down(call, name);
  errno = ENETUNREACH;
  return 1;
}

int connect(int socket, const struct sockaddr *address, socklen_t length) {
  if (refused("connect", address)) return -1;
  int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
  return real(socket, address, length);
}

ssize_t sendto(int socket, const void *data, size_t size, int flags, const struct sockaddr *address,
               socklen_t length) {
  if (refused("sendto", address)) return -1;
  ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "sendto");
  return real(socket, data, size, flags, address, length);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  if (node && strcmp(node, "localhost") && strncmp(node, "127.", 4) && strcmp(node, "::1")) {
    write_down("getaddrinfo", node);
    return EAI_FAIL;
  }
  int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
      dlsym(RTLD_NEXT, "getaddrinfo");
  return real(node, service, hints, found);
}
