/* SPDX-License-Identifier: GPL-2.0-only */
/* request.h - builds a traffic-control request attribute by attribute, sends it and reads the answer. */
#ifndef REQUEST_H
#define REQUEST_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#define REQUEST_ROOM 12000              /* of attributes */

struct request {
	struct nlmsghdr n;
	struct tcmsg t;
	char attrs[REQUEST_ROOM];
};

struct answer {
	int error;                      /* 0, or the kernel's negative error */
	const char *text;               /* NULL: none */
	uint32_t at;                    /* offset of the attribute at fault; 0: none is named */
};

static inline void request_fail(const char *what)
{
	fprintf(stderr, "request: %s: %s\n", what, strerror(errno));
	exit(1);
}

static inline void request_begin(struct request *r, int type, int flags, int ifindex, uint32_t parent, uint32_t handle)
{
	memset(r, 0, sizeof(r->n) + sizeof(r->t));
	r->n.nlmsg_len = NLMSG_LENGTH(sizeof(r->t));
	r->n.nlmsg_type = (unsigned short)type;
	r->n.nlmsg_flags = (unsigned short)(NLM_F_REQUEST | NLM_F_ACK | flags);
	r->t.tcm_ifindex = ifindex;
	r->t.tcm_parent = parent;
	r->t.tcm_handle = handle;
}

static inline struct rtattr *request_end(struct request *r)
{
	return (struct rtattr *)((char *)r + NLMSG_ALIGN(r->n.nlmsg_len));
}

/* Adds an attribute with a copy of `data`, or zeros if it is NULL. A nest has length 0 until request_close() ends it. */
static inline struct rtattr *request_put(struct request *r, int type, const void *data, size_t length)
{
	struct rtattr *attr = request_end(r);

	if ((char *)attr + RTA_SPACE(length) > (char *)(r + 1)) {
		errno = EMSGSIZE;
		request_fail("too many attributes");
	}
	memset(attr, 0, RTA_SPACE(length));
	attr->rta_type = (unsigned short)type;
	attr->rta_len = (unsigned short)RTA_LENGTH(length);
	if (data && length)
		memcpy(RTA_DATA(attr), data, length);
	r->n.nlmsg_len = NLMSG_ALIGN(r->n.nlmsg_len) + (uint32_t)RTA_ALIGN(attr->rta_len);
	return attr;
}

static inline void request_close(struct request *r, struct rtattr *nest)
{
	nest->rta_len = (unsigned short)((char *)request_end(r) - (char *)nest);
}

/* a socket whose answers have a text and do not repeat the request */
static inline int request_socket(void)
{
	int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), on = 1;

	if (s < 0 || setsockopt(s, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on)) ||
	    setsockopt(s, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on)))
		request_fail("socket");
	return s;
}

/* sends it and waits for the answer, whose text is valid until the next request */
static inline struct answer request_send(int s, struct request *r)
{
	static uint32_t sequence;
	static char buffer[65536];

	r->n.nlmsg_seq = ++sequence;
	if (send(s, r, r->n.nlmsg_len, 0) < 0)
		request_fail("send");
	for (;;) {
		ssize_t length = recv(s, buffer, sizeof(buffer), 0);
		struct nlmsghdr *n = (struct nlmsghdr *)buffer;

		if (length < 0)
			request_fail("recv");
		for (; NLMSG_OK(n, length); n = NLMSG_NEXT(n, length)) {
			const struct nlmsgerr *error = NLMSG_DATA(n);
			size_t at = NLMSG_ALIGN(sizeof(*error));
			struct answer answer = { 0 };
			int rest;
			struct rtattr *attr;

			if (n->nlmsg_seq != sequence || n->nlmsg_type != NLMSG_ERROR)
				continue;
			answer.error = error->error;
			if (!(n->nlmsg_flags & NLM_F_ACK_TLVS))
				return answer;
			if (!(n->nlmsg_flags & NLM_F_CAPPED))
				at += error->msg.nlmsg_len - sizeof(error->msg);
			attr = (struct rtattr *)((char *)NLMSG_DATA(n) + NLMSG_ALIGN(at));
			rest = (int)(n->nlmsg_len - NLMSG_HDRLEN - NLMSG_ALIGN(at));
			for (; RTA_OK(attr, rest); attr = RTA_NEXT(attr, rest)) {
				if ((attr->rta_type & NLA_TYPE_MASK) == NLMSGERR_ATTR_MSG)
					answer.text = RTA_DATA(attr);
				if ((attr->rta_type & NLA_TYPE_MASK) == NLMSGERR_ATTR_OFFS)
					memcpy(&answer.at, RTA_DATA(attr), sizeof(answer.at));
			}
			return answer;
		}
	}
}

#endif
