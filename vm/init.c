// SPDX-License-Identifier: GPL-2.0
/*
 * PID 1 of the virtual machine that vm/run boots.
 *
 * Sets the machine up, runs one program, reports and stops the machine. The
 * three serial ports do not mix: the kernel's console is ttyS0, the program's
 * stdout and stderr are ttyS1, and what became of it goes to ttyS2 as lines:
 *
 *	start		the set-up is done, the program runs now
 *	exit N		it exited with status N
 *	signal N	it was killed by signal N
 *	setup TEXT	the set-up failed, the program did not run
 *
 * From the environment, which is what the kernel makes of its command line:
 *
 *	VM_MODULE=on	load /lib/modules/ksm_dirty.ko
 *	VM_SWAP=MIB	size of the zram swap device
 *	VM_TTY=1	ttyS1 is a person's terminal
 *	VM_TIME=SEC	seconds since 1970
 *
 * and from /vm/args, the program and its arguments, each ended by a NUL.
 *
 * On the host, init --tsc-khz prints the frequency of the time stamp counter,
 * which is the emulated machine's as well. The kernel in the machine would have to
 * measure it against an emulated timer, and fails at that when the host is busy.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define MAX_ARGS 1024
#define MODULE_DIR "/lib/modules/"

static int report_fd = -1;

static void __attribute__((noreturn)) stop_machine(void)
{
	if (report_fd >= 0)
		tcdrain(report_fd);
	sync();
	/* There is no ACPI: QEMU's -no-reboot makes this the end. */
	reboot(RB_AUTOBOOT);
	for (;;)
		pause();
}

static void __attribute__((format(printf, 1, 2))) report(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vdprintf(report_fd, fmt, ap);
	va_end(ap);
}

static void __attribute__((noreturn, format(printf, 1, 2)))
setup_failed(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	report("setup %s\n", text);
	stop_machine();
}

static void mount_one(const char *type, const char *dir, const char *options)
{
	mkdir(dir, 0755);
	if (mount(type, dir, type, 0, options) && errno != EBUSY)
		setup_failed("cannot mount %s on %s: %m", type, dir);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		setup_failed("cannot write %s to %s: %m", text, path);
	close(fd);
}

static void make_raw(int fd)
{
	struct termios t;

	if (tcgetattr(fd, &t))
		return;
	cfmakeraw(&t);
	tcsetattr(fd, TCSANOW, &t);
}

static void open_report(void)
{
	report_fd = open("/dev/ttyS2", O_WRONLY | O_NOCTTY | O_CLOEXEC);
	if (report_fd >= 0)
		make_raw(report_fd);
}

/*
 * Parameters on the kernel's command line as module.name=value belong to the
 * module once it is loaded; the kernel itself passes on only those of built-in
 * code. A dash and an underscore are the same in a module's name.
 */
static void collect_params(const char *module, char *out, size_t size)
{
	static char cmdline[8192];
	size_t n = strlen(module), used = 0;
	char *word, *save;
	FILE *f;

	out[0] = '\0';
	f = fopen("/proc/cmdline", "re");
	if (!f)
		setup_failed("cannot read /proc/cmdline: %m");
	if (!fgets(cmdline, sizeof(cmdline), f))
		cmdline[0] = '\0';
	fclose(f);

	for (word = strtok_r(cmdline, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save)) {
		size_t i;

		for (i = 0; i < n; i++)
			if (word[i] != module[i] &&
			    !(word[i] == '-' && module[i] == '_'))
				break;
		if (i == n && word[n] == '.')
			used += snprintf(out + used, size - used, "%s ",
					 word + n + 1);
		if (used >= size)
			setup_failed("too many parameters for %s", module);
	}
}

/* Loads a module if its file was put into the machine. */
static int load_module(const char *file, const char *name)
{
	char path[256], params[1024];
	int fd, ret;

	snprintf(path, sizeof(path), MODULE_DIR "%s", file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	collect_params(name, params, sizeof(params));
	ret = syscall(SYS_finit_module, fd, params, 0);
	if (ret)
		setup_failed("cannot load %s: %m", file);
	close(fd);
	return 0;
}

static int cpu_has(const char *flag)
{
	static char line[8192];
	char word[32];
	int found = 0;
	FILE *f;

	snprintf(word, sizeof(word), " %s ", flag);
	f = fopen("/proc/cpuinfo", "re");
	if (!f)
		setup_failed("cannot read /proc/cpuinfo: %m");
	while (!found && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "flags", 5))
			continue;
		line[strcspn(line, "\n")] = ' ';
		found = strstr(line, word) != NULL;
	}
	fclose(f);
	return found;
}

static void load_kvm(void)
{
	if (access(MODULE_DIR "kvm.ko", R_OK))
		return;
	load_module("irqbypass.ko", "irqbypass");
	load_module("kvm.ko", "kvm");
	if (cpu_has("svm"))
		load_module("kvm-amd.ko", "kvm_amd");
	if (cpu_has("vmx"))
		load_module("kvm-intel.ko", "kvm_intel");
}

static void run_quietly(char *const argv[])
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		int fd = open("/dev/null", O_RDWR);

		dup2(fd, 0);
		dup2(fd, 1);
		dup2(fd, 2);
		execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		setup_failed("%s %s failed", argv[0], argv[1]);
}

static void set_up_swap(const char *mib)
{
	char size[32];

	if (!mib || access("/sys/block/zram0/disksize", F_OK))
		return;
	snprintf(size, sizeof(size), "%sM", mib);
	write_file("/sys/block/zram0/disksize", size);
	run_quietly((char *const[]){ "/bin/busybox", "mkswap", "/dev/zram0",
				     NULL });
	if (swapon("/dev/zram0", 0))
		setup_failed("cannot swap to /dev/zram0: %m");
}

static void set_up(void)
{
	const char *seconds = getenv("VM_TIME");

	mount_one("devtmpfs", "/dev", NULL);
	open_report();
	mount_one("proc", "/proc", NULL);
	mount_one("sysfs", "/sys", NULL);
	mount_one("tmpfs", "/dev/shm", NULL);
	mount_one("devpts", "/dev/pts", NULL);
	mount_one("tmpfs", "/tmp", NULL);
	mount_one("tmpfs", "/run", NULL);
	mount_one("debugfs", "/sys/kernel/debug", NULL);
	mount_one("tracefs", "/sys/kernel/tracing", NULL);
	mount_one("cgroup2", "/sys/fs/cgroup", NULL);
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
	sethostname("vm", 2);
	if (seconds)
		clock_settime(CLOCK_REALTIME,
			      &(struct timespec){ .tv_sec = atoll(seconds) });
	if (!access("/bin/busybox", X_OK))
		run_quietly((char *const[]){ "/bin/busybox", "--install", "-s",
					     NULL });
	set_up_swap(getenv("VM_SWAP"));
	load_kvm();
	if (getenv("VM_MODULE") && load_module("ksm_dirty.ko", "ksm_dirty"))
		setup_failed("no ksm_dirty.ko was built for this kernel");
}

static char **read_args(void)
{
	static char *args[MAX_ARGS + 1];
	static char text[1 << 17];
	int fd = open("/vm/args", O_RDONLY | O_CLOEXEC);
	ssize_t len, at = 0;
	int n = 0;

	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (len <= 0)
		setup_failed("cannot read /vm/args: %m");
	close(fd);
	while (at < len && n < MAX_ARGS) {
		args[n++] = text + at;
		at += strlen(text + at) + 1;
	}
	return args;
}

static void __attribute__((noreturn)) run_program(char **args)
{
	int tty = getenv("VM_TTY") != NULL;
	int out, in;

	setsid();
	out = open("/dev/ttyS1", O_RDWR | (tty ? 0 : O_NOCTTY));
	if (out < 0)
		setup_failed("cannot open /dev/ttyS1: %m");
	if (tty) {
		ioctl(out, TIOCSCTTY, 0);
		in = out;
	} else {
		make_raw(out);
		in = open("/dev/null", O_RDONLY);
	}
	dup2(in, 0);
	dup2(out, 1);
	dup2(out, 2);
	if (in > 2 && in != out)
		close(in);
	if (out > 2)
		close(out);
	clearenv();
	setenv("PATH", "/vm:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/vm", 1);
	setenv("TERM", tty ? "linux" : "dumb", 1);
	setenv("TMPDIR", "/tmp", 1);
	report("start\n");
	execvp(args[0], args);
	setup_failed("cannot run %s: %m", args[0]);
}

/* Counter and clock read together: the closest pair of several tries. */
static void read_clocks(uint64_t *ticks, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;
	int i;

	for (i = 0; i < 100; i++) {
		uint64_t before = __rdtsc(), after;
		struct timespec ts;

		clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
		after = __rdtsc();
		if (after - before >= best)
			continue;
		best = after - before;
		*ticks = before + best / 2;
		*ns = ts.tv_sec * 1000000000ull + ts.tv_nsec;
	}
}

static int print_tsc_khz(void)
{
	uint64_t ticks[2], ns[2];

	read_clocks(&ticks[0], &ns[0]);
	usleep(50000);
	read_clocks(&ticks[1], &ns[1]);
	printf("%.0f\n", (ticks[1] - ticks[0]) * 1e6 / (ns[1] - ns[0]));
	return 0;
}

int main(int argc, char **argv)
{
	char **args;
	int status;
	pid_t pid;

	if (argc == 2 && !strcmp(argv[1], "--tsc-khz"))
		return print_tsc_khz();
	if (getpid() != 1) {
		fprintf(stderr, "init: this is PID 1 of vm/run's machine\n");
		return 1;
	}

	/* The console's port shares its interrupt with the report's. */
	close(0);
	close(1);
	close(2);
	umask(022);
	/* Stands in for fds 0 to 2, so that no port is taken for one of them. */
	mkdir("/dev", 0755);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	while (open("/dev/null", O_RDWR) < 2)
		;
	set_up();
	args = read_args();
	if (chdir("/vm"))
		setup_failed("cannot enter /vm: %m");

	pid = fork();
	if (pid < 0)
		setup_failed("cannot fork: %m");
	if (!pid)
		run_program(args);
	for (;;) {
		pid_t gone = wait(&status);

		if (gone == pid)
			break;
		if (gone < 0 && errno != EINTR)
			setup_failed("cannot wait for the program: %m");
	}
	if (WIFSIGNALED(status))
		report("signal %d\n", WTERMSIG(status));
	else
		report("exit %d\n", WEXITSTATUS(status));
	stop_machine();
}
