#pragma once
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

// Ancillary data is laid out by the CMSG_ macros of cmsg(3), which Swift can't call.
// poll(2) hides POLLRDHUP behind _GNU_SOURCE; Linux gives it this value everywhere but on SPARC.
static const short pw_peer_closed = 0x2000;
enum { pw_max_descriptors = 128 };

// A file in memory, or -1 with errno. memfd_create(2) and its flag MFD_CLOEXEC are hidden behind _GNU_SOURCE.
static inline int pw_memory_file(const char *_Nonnull name) { return (int)syscall(SYS_memfd_create, name, 1U); }

// Sends one message with open descriptors beside it. Returns the bytes sent, or -1 with errno.
static inline ssize_t pw_send(
    int socket, const void *_Nonnull bytes, size_t length, const int *_Nullable descriptors, size_t count)
{
    union { char space[CMSG_SPACE(sizeof(int) * pw_max_descriptors)]; struct cmsghdr align; } control;
    struct iovec part = { (void *)bytes, length };
    struct msghdr message = { 0 };
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (count > pw_max_descriptors) { errno = E2BIG; return -1; }
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(header), descriptors, sizeof(int) * count);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL);
}

// Receives one message; up to pw_max_descriptors descriptors go to `descriptors`, their number to `count`.
// Returns the bytes received, 0 at the end, or -1 with errno (EMSGSIZE for a message that didn't fit).
static inline ssize_t pw_receive(
    int socket, void *_Nonnull bytes, size_t capacity, int *_Nonnull descriptors, size_t *_Nonnull count)
{
    union { char space[CMSG_SPACE(sizeof(int) * pw_max_descriptors)]; struct cmsghdr align; } control;
    struct iovec part = { bytes, capacity };
    struct msghdr message = { 0 };
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.space;
    message.msg_controllen = sizeof control.space;
    *count = 0;
    ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (received < 0) return received;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (here > pw_max_descriptors - *count) here = pw_max_descriptors - *count;
        memcpy(descriptors + *count, CMSG_DATA(header), sizeof(int) * here);
        *count += here;
    }
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) { errno = EMSGSIZE; return -1; }
    return received;
}
