// SPDX-License-Identifier: BSD-3-Clause
/* UDP sockets over IPv4 for both ends of a measurement; an error ends the program with a message. */
#ifndef BENCH_GATEWAY_UDP_H
#define BENCH_GATEWAY_UDP_H

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

static struct sockaddr_in address(const char *text, const char *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};

	if (inet_pton(AF_INET, text, &at.sin_addr) != 1)
		errx(1, "%s: must be an IPv4 address", text);
	return at;
}

/* A socket bound to an address, with a large receive buffer for while the reader is stalled; `flags` as in socket(2). */
static int open_socket(const struct sockaddr_in *at, int flags, int receive_bytes)
{
	int fd = socket(AF_INET, SOCK_DGRAM | flags, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)at, sizeof *at))
		err(1, "socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive_bytes, sizeof receive_bytes))
		err(1, "SO_RCVBUFFORCE");
	return fd;
}

#endif
