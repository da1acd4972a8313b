/* The line protocol between a client program and the test that runs it: one line "PASS name" or "FAIL name: why" for each
 * check, "CALL what" to have something done to the server, "END count" at the end. */
#ifndef REPORT_H
#define REPORT_H

#include <setjmp.h>
#include <stdio.h>

extern jmp_buf check_failed;
extern char check_why[1024];

/* Ends the current check. Only to be used in the main thread. */
#define FAIL(...)                                                                                                      \
	do {                                                                                                           \
		int n_ = snprintf(check_why, sizeof check_why, "line %d: ", __LINE__);                                 \
		snprintf(check_why + n_, sizeof check_why - n_, __VA_ARGS__);                                          \
		longjmp(check_failed, 1);                                                                              \
	} while (0)

#define EXPECT(cond)                                                                                                   \
	do {                                                                                                           \
		if (!(cond))                                                                                           \
			FAIL("not true: %s", #cond);                                                                   \
	} while (0)

#define EXPECT_INT(got, want)                                                                                          \
	do {                                                                                                           \
		long long got_ = (got), want_ = (want);                                                                \
		if (got_ != want_)                                                                                     \
			FAIL("%s is %lld, want %lld", #got, got_, want_);                                              \
	} while (0)

#define EXPECT_STR(got, want)                                                                                          \
	do {                                                                                                           \
		const char *got_ = (got), *want_ = (want);                                                             \
		if (got_ == NULL || strcmp(got_, want_) != 0)                                                          \
			FAIL("%s is \"%s\", want \"%s\"", #got, got_ ? got_ : "(null)", want_);                        \
	} while (0)

/* A return code of the client library. */
#define OK(call) EXPECT_RC(call, ZOK)
#define EXPECT_RC(call, want)                                                                                          \
	do {                                                                                                           \
		int got_ = (call), want_ = (want);                                                                     \
		if (got_ != want_)                                                                                     \
			FAIL("%s: %d (%s), want %d (%s)", #call, got_, zerror(got_), want_, zerror(want_));            \
	} while (0)

/* Waits up to 30 s until cond is true. */
#define EVENTUALLY(cond)                                                                                               \
	do {                                                                                                           \
		int left_ = 3000;                                                                                      \
		while (!(cond) && left_-- > 0)                                                                         \
			usleep(10000);                                                                                 \
		if (left_ < 0)                                                                                         \
			FAIL("not within 30 s: %s", #cond);                                                            \
	} while (0)

void call(const char *what);

#endif
