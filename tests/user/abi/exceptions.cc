// SPDX-License-Identifier: BSD-2-Clause
/*
 * C++ as people write it: exceptions through many frames and their destructors, in 64 threads at
 * once, carried from thread to thread, out of a child; dynamic_cast, std::thread and what it needs.
 */
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "run.h"
}

namespace
{
constexpr int nr_threads = 64;

struct counted {
	explicit counted(std::atomic<int> &nr) : nr(nr)
	{
		nr++;
	}
	~counted()
	{
		nr--;
	}
	counted(const counted &) = delete;
	std::atomic<int> &nr;
};

struct base {
	virtual ~base() = default;
	virtual int kind() const
	{
		return 1;
	}
};
struct left : virtual base {
	int kind() const override
	{
		return 2;
	}
};
struct right : virtual base {
	int more = 5;
};
struct both : left, right {
};

struct own_error : std::runtime_error {
	own_error(int code) : std::runtime_error("code " + std::to_string(code)), code(code)
	{
	}
	int code;
};

/* Throws below `depth` frames. Each frame has objects to destroy. */
int descend(int depth, std::atomic<int> &alive)
{
	counted here(alive);
	std::string text(40 + depth % 7, 'x');

	if (depth == 0)
		throw own_error(alive);
	return descend(depth - 1, alive) + static_cast<int>(text.size());
}

TEST(frames)
{
	std::atomic<int> alive{ 0 };
	int nr_caught = 0;

	for (int depth : { 0, 1, 10, 1000 }) {
		try {
			descend(depth, alive);
			CHECK(!"came back");
		} catch (const own_error &error) {
			CHECK(error.code == depth + 1 && alive == 0);
			CHECK(error.what() == "code " + std::to_string(depth + 1));
			nr_caught++;
		}
	}
	CHECK(nr_caught == 4);
}

/*
 * Catches exceptions by value, by base class and by pointer; a handler that does not match; throws
 * again from a handler, and another exception in a destructor.
 */
TEST(catches)
{
	int way = 0;

	try {
		throw both();
	} catch (const right &caught) {
		way = caught.more + caught.kind();
	}
	CHECK(way == 7);
	try {
		try {
			throw 42;
		} catch (const char *) {
			way = 1;
		} catch (long) {
			way = 2;
		} catch (...) {
			way = 3;
			throw;
		}
	} catch (int value) {
		CHECK(way == 3 && value == 42);
	}
	try {
		try {
			throw std::out_of_range("inner");
		} catch (...) {
			std::throw_with_nested(own_error(9));
		}
	} catch (const own_error &error) {
		try {
			std::rethrow_if_nested(error);
			CHECK(!"was nested");
		} catch (const std::logic_error &inner) {
			CHECK(inner.what() == std::string("inner") && error.code == 9);
		}
	}
	CHECK(std::uncaught_exceptions() == 0);
	try {
		std::vector<int>().at(5);
		CHECK(!"there is none");
	} catch (const std::exception &error) {
		way = 8;
	}
	CHECK(way == 8);
	try {
		::operator delete(::operator new(static_cast<size_t>(1) << 50));
		CHECK(!"is that much memory");
	} catch (const std::bad_alloc &) {
		way = 9;
	}
	CHECK(way == 9);
}

TEST(casts)
{
	both object;
	base *pointer = &object;
	left only;

	CHECK(dynamic_cast<right *>(pointer) == &object &&
	      dynamic_cast<both *>(pointer) == &object);
	CHECK(dynamic_cast<right *>(static_cast<base *>(&only)) == nullptr);
	try {
		dynamic_cast<right &>(static_cast<base &>(only)).more = 1;
		CHECK(!"is no right");
	} catch (const std::bad_cast &) {
		CHECK(only.kind() == 2);
	}
}

/* All threads throw at the same time, repeatedly, each with its own values. */
TEST(threads)
{
	std::atomic<int> alive{ 0 }, nr_caught{ 0 }, nr_wrong{ 0 };
	std::vector<std::thread> threads;
	std::atomic<bool> go{ false };

	for (int i = 0; i < nr_threads; i++) {
		threads.emplace_back([&, i] {
			std::atomic<int> mine{ 0 };

			while (!go)
				std::this_thread::yield();
			for (int round = 0; round < 20; round++) {
				counted here(alive);
				try {
					descend(i + round, mine);
				} catch (const std::runtime_error &error) {
					auto own = dynamic_cast<const own_error *>(&error);

					if (!own || own->code != i + round + 1 || mine != 0)
						nr_wrong++;
					nr_caught++;
				}
			}
		});
	}
	go = true;
	for (auto &thread : threads)
		thread.join();
	CHECK(nr_caught == nr_threads * 20 && nr_wrong == 0 && alive == 0);
}

/* Exceptions thrown in one thread and caught in another; a promise that is never kept. */
TEST(carried)
{
	std::vector<std::future<int>> futures;
	std::atomic<int> alive{ 0 };
	std::future<int> broken;
	int sum = 0, nr_thrown = 0;

	for (int i = 0; i < 16; i++) {
		futures.push_back(std::async(std::launch::async, [i, &alive] {
			return i % 2 ? descend(i, alive) : i;
		}));
	}
	for (auto &future : futures) {
		try {
			sum += future.get();
		} catch (const own_error &error) {
			nr_thrown++;
		}
	}
	CHECK(sum == 56 && nr_thrown == 8 && alive == 0);
	broken = std::promise<int>().get_future();
	try {
		broken.get();
		CHECK(!"has no value");
	} catch (const std::future_error &error) {
		CHECK(error.code() == std::future_errc::broken_promise);
	}
}

thread_local std::string thread_name = "unnamed";

TEST(synchronization)
{
	std::map<std::string, int> names;
	std::condition_variable changed;
	std::vector<std::thread> threads;
	std::mutex mutex;
	std::once_flag once;
	int turn = 0, nr_once = 0;

	for (int i = 0; i < 8; i++) {
		threads.emplace_back([&, i] {
			CHECK(thread_name == "unnamed");
			thread_name = "thread" + std::to_string(i);
			std::call_once(once, [&] { nr_once++; });
			for (int round = 0; round < 50; round++) {
				std::unique_lock<std::mutex> lock(mutex);

				changed.wait(lock, [&] { return turn % 8 == i; });
				turn++;
				names[thread_name]++;
				changed.notify_all();
			}
		});
	}
	for (auto &thread : threads)
		thread.join();
	CHECK(turn == 400 && nr_once == 1 && names.size() == 8 && thread_name == "unnamed");
	for (auto &name : names)
		CHECK(name.second == 50);
	{
		std::unique_lock<std::mutex> lock(mutex);

		CHECK(!changed.wait_for(lock, std::chrono::milliseconds(20), [] { return false; }));
	}
}

/* A child of fork() can throw. An exception that is not caught ends it with SIGABRT. */
TEST(processes)
{
	std::atomic<int> alive{ 0 };

	for (int how = 0; how < 2; how++) {
		pid_t pid = fork_child();

		if (!pid) {
			if (how) {
				close(2); /* drops the message of terminate() */
				[&]() noexcept { descend(3, alive); }();
			}
			try {
				descend(100, alive);
			} catch (const own_error &error) {
				child_exit(error.code);
			}
		}
		CHECK((child_status(pid) & ~0x80) == (how ? SIGABRT : EXITED(101)));
	}
}

void throw_from_handler(int)
{
	throw own_error(77);
}

/* Throws from the handler of a fault, as -fnon-call-exceptions permits. */
int __attribute__((noinline)) divide(int by)
{
	return 100 / *const_cast<volatile int *>(&by);
}

TEST(fault)
{
	struct sigaction action = {};
	sigset_t set;
	int way = 0;

	action.sa_handler = throw_from_handler;
	CHECK(!sigaction(SIGFPE, &action, nullptr));
	try {
		way = divide(0);
	} catch (const own_error &error) {
		way = error.code;
	}
	CHECK(way == 77);
	sigemptyset(&set);
	sigaddset(&set, SIGFPE); /* still blocked: the handler never returned */
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, nullptr));
	std::signal(SIGFPE, SIG_DFL);
}
} // namespace

int main(int argc, char **argv)
{
	return run_tests("exceptions", argc, argv);
}
