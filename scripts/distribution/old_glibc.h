// Included before every kernel of a wheel. Binds symbols that a newer C library exports in a new version to their older
// version, which every manylinux_2_17 system has. The functions are identical; they moved from libpthread to libc.
#if defined(__x86_64__)
#define OLD_VERSION "GLIBC_2.2.5"
#define OLD_CLOCK_VERSION "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define OLD_VERSION "GLIBC_2.17"
#define OLD_CLOCK_VERSION "GLIBC_2.17"
#endif
__asm__(".symver pthread_create, pthread_create@" OLD_VERSION);
__asm__(".symver pthread_detach, pthread_detach@" OLD_VERSION);
__asm__(".symver pthread_condattr_setclock, pthread_condattr_setclock@" OLD_CLOCK_VERSION);
