/* Preloaded into workerd: every sync of the disk takes as much longer as SLOW_SYNC_US says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_longer(void) {
  const char *us = getenv("SLOW_SYNC_US");
  if (us != NULL) usleep((useconds_t)atoi(us));
}

int fsync(int fd) {
  static int (*next)(int);
  if (next == NULL) next = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  wait_longer();
  return next(fd);
}

int fdatasync(int fd) {
  static int (*next)(int);
  if (next == NULL) next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  wait_longer();
  return next(fd);
}
