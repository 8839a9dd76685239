// Loops over independent items on several threads. Which thread takes which item is not determined, so an item's
// result must not depend on it.
//
// The threads of a pool live as long as it does, since starting one costs more than a batch of trees. Between two
// loops they look out for the next one for a while, then sleep. A pool belongs to the process that made it: after a
// fork the child has none of its threads, and starts its own when it needs them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#ifndef _WIN32
#include <signal.h>
#include <unistd.h>
#endif

namespace tsgkit {

class ThreadPool {
public:
    ThreadPool() = default;
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    ~ThreadPool() {
        leave_to_parent();
        if (!crew_) return;
        crew_->is_over.store(true, std::memory_order_relaxed);
        crew_->post(0);
        for (std::thread& thread : crew_->threads) thread.join();
    }

    // Calls work(item, thread) for every item below n_items; threads are numbered from 0, the caller's. Only one
    // loop at a time.
    template <class Work>
    void loop(int n_threads, int n_items, Work&& work) {
        if (n_threads <= 1 || n_items <= 1) {
            for (int item = 0; item < n_items; ++item) work(item, 0);
            return;
        }
        leave_to_parent();
        if (!crew_) crew_ = std::make_unique<Crew>();
        crew_->grow(n_threads - 1);
        crew_->call = [](void* context, int item, int thread) {
            (*static_cast<std::remove_reference_t<Work>*>(context))(item, thread);
        };
        crew_->context = &work;
        crew_->n_threads.store(n_threads, std::memory_order_relaxed);
        crew_->n_done.store(0, std::memory_order_relaxed);
        const uint64_t round = crew_->post(n_items);
        crew_->take_items(round, 0);
        for (int n_looks = 0; crew_->n_done.load(std::memory_order_acquire) < n_items; ++n_looks) look_away(n_looks);
    }

private:
    // How long an idle thread looks out for work before it sleeps: longer than the serial part of a batch takes.
    static constexpr std::chrono::microseconds PATIENCE{1000};

    static void look_away(int n_looks) {
        if (n_looks < 256) {
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        } else {
            std::this_thread::yield();
        }
    }

    static int64_t process_number() {
#ifdef _WIN32
        return 0;
#else
        return static_cast<int64_t>(getpid());
#endif
    }

    struct Crew {
        int64_t process = process_number();
        std::vector<std::thread> threads;
        // The present loop. `ticket` is its number (upper half) and how many items nobody has taken yet: the last one
        // goes first. Nothing else changes before all items are done.
        std::atomic<uint64_t> ticket{0};
        std::atomic<int> n_done{0}, n_threads{0};
        std::atomic<bool> is_over{false};
        void (*call)(void*, int, int) = nullptr;
        void* context = nullptr;
        std::mutex mutex;
        std::condition_variable posted;

        static uint64_t round_of(uint64_t ticket) { return ticket >> 32; }

        // Begin a loop.
        uint64_t post(int n_items) {
            std::lock_guard<std::mutex> lock(mutex);
            const uint64_t round = (round_of(ticket.load(std::memory_order_relaxed)) + 1) & 0xffffffff;
            ticket.store(round << 32 | static_cast<uint32_t>(n_items), std::memory_order_release);
            posted.notify_all();
            return round;
        }

        void take_items(uint64_t round, int thread) {
            uint64_t seen = ticket.load(std::memory_order_acquire);
            while (round_of(seen) == round && (seen & 0xffffffff) != 0) {
                if (!ticket.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel)) continue;
                call(context, static_cast<int>(seen & 0xffffffff) - 1, thread);
                n_done.fetch_add(1, std::memory_order_release);
                seen = ticket.load(std::memory_order_acquire);
            }
        }

        // The number of the loop after `before`.
        uint64_t await(uint64_t before) {
            const auto until = std::chrono::steady_clock::now() + PATIENCE;
            for (int n_looks = 0; n_looks % 64 || std::chrono::steady_clock::now() < until; ++n_looks) {
                const uint64_t round = round_of(ticket.load(std::memory_order_acquire));
                if (round != before) return round;
                look_away(n_looks);
            }
            std::unique_lock<std::mutex> lock(mutex);
            posted.wait(lock, [&] { return round_of(ticket.load(std::memory_order_relaxed)) != before; });
            return round_of(ticket.load(std::memory_order_relaxed));
        }

        void serve(int thread, uint64_t before) {
            for (;;) {
                before = await(before);
                if (is_over.load(std::memory_order_relaxed)) return;
                if (thread < n_threads.load(std::memory_order_relaxed)) take_items(before, thread);
            }
        }

        // Have so many threads beside the caller's, or as many as the system gives. They take no signals, which are
        // for the threads that wait for them.
        void grow(int n) {
#ifndef _WIN32
            sigset_t all, usual;
            sigfillset(&all);
            if (static_cast<int>(threads.size()) >= n || pthread_sigmask(SIG_SETMASK, &all, &usual) != 0) return;
#endif
            const uint64_t before = round_of(ticket.load(std::memory_order_relaxed));
            try {
                while (static_cast<int>(threads.size()) < n) {
                    const int thread = static_cast<int>(threads.size()) + 1;
                    threads.emplace_back([this, thread, before] { serve(thread, before); });
                }
            } catch (const std::system_error&) {
            }
#ifndef _WIN32
            pthread_sigmask(SIG_SETMASK, &usual, nullptr);
#endif
        }
    };

    std::unique_ptr<Crew> crew_;

    // In the child of a fork there is nobody to join: forget the parent's threads without touching them.
    void leave_to_parent() {
        if (crew_ && crew_->process != process_number()) static_cast<void>(crew_.release());
    }
};

}  // namespace tsgkit
