/*
 * A preload library that moves the wall clock of a process by as many seconds as the file named by SKEW_FILE says.
 * Steady clocks are left alone.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long skewSeconds(void) {
  const char *path = getenv("SKEW_FILE");
  if (path == NULL) return 0;
  int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[24] = {0};
  long length = syscall(SYS_read, file, text, sizeof text - 1);
  syscall(SYS_close, file);
  return length > 0 ? strtol(text, NULL, 10) : 0;
}

static int isWall(clockid_t id) { return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE; }

int clock_gettime(clockid_t id, struct timespec *at) {
  int failed = (int)syscall(SYS_clock_gettime, id, at);
  if (!failed && isWall(id)) at->tv_sec += skewSeconds();
  return failed;
}

int gettimeofday(struct timeval *at, void *zone) {
  (void)zone;
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  at->tv_sec = wall.tv_sec;
  at->tv_usec = wall.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  if (at != NULL) *at = wall.tv_sec;
  return wall.tv_sec;
}
