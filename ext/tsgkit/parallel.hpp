// A worker pool: loops over independent items on several threads. Which thread takes which item is not determined, so
// an item's result must not depend on it. It knows no model and no Python.
//
// The workers of a pool live as long as it does, since starting a thread costs more than a batch of trees. Between two
// loops they spin for a while, then sleep. A pool belongs to the process that made it: after a fork the child has none
// of its threads, and starts its own when it needs them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#ifndef _WIN32
#include <signal.h>
#include <unistd.h>
#endif

namespace tsgkit {

// How many blocks of so many bytes there is memory for now, at most n_rooms.
inline int count_rooms(int n_rooms, size_t n_bytes) {
    void* last = nullptr;   // every block begins with the address of the one before
    int n_found = 0;
    for (; n_found < n_rooms; ++n_found) {
        void** room = static_cast<void**>(std::malloc(n_bytes));
        if (!room) break;
        *static_cast<void* volatile*>(room) = last;
        last = room;
    }
    while (last) std::free(std::exchange(last, *static_cast<void**>(last)));
    return n_found;
}

// Much more than an exception and the storage of a thread take; too large for any cache of free memory.
constexpr size_t THROWING_ROOM = size_t(1) << 20;

// Whether this thread can throw that an allocation failed. C++ keeps what it needs to throw for every thread, and asks for
// it when the first exception is thrown: where there is no memory for that, the process ends.
inline bool prepare_throwing() {
    // The flag is storage of the thread as well, so that it is looked at only when there is memory.
    static thread_local bool is_prepared = false;
    if (count_rooms(1, THROWING_ROOM) == 0) return false;
    if (is_prepared) return true;
    try {
        throw std::bad_alloc();
    } catch (const std::bad_alloc&) {
    }
    is_prepared = true;
    return true;
}

class WorkerPool {
public:
    using Call = void (*)(void* context, int item, int thread);

    WorkerPool() = default;
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    ~WorkerPool() {
        forget_parent_workers();
        if (!workers_) return;
        workers_->is_over.store(true, std::memory_order_relaxed);
        workers_->post(0);
        for (std::thread& thread : workers_->threads) thread.join();
    }

    // Calls call(context, item, thread) for every item below n_items; threads are numbered from 0, the caller's. Only one
    // loop at a time. What a call throws is thrown again here, after all other items.
    void run(int n_threads, int n_items, Call call, void* context) {
        if (n_threads <= 1 || n_items <= 1) {
            for (int item = 0; item < n_items; ++item) call(context, item, 0);
            return;
        }
        forget_parent_workers();
        if (!workers_) workers_ = std::make_unique<Workers>();
        workers_->grow(n_threads - 1);
        workers_->call = call;
        workers_->context = context;
        workers_->n_threads.store(n_threads, std::memory_order_relaxed);
        workers_->n_done.store(0, std::memory_order_relaxed);
        const uint64_t round = workers_->post(n_items);
        workers_->take_items(round, 0);
        for (int n_spins = 0; workers_->n_done.load(std::memory_order_acquire) < n_items; ++n_spins) spin_wait(n_spins);
        if (workers_->failure) std::rethrow_exception(std::exchange(workers_->failure, nullptr));
    }

private:
    // How long an idle worker spins before it sleeps: longer than the serial part of a batch takes.
    static constexpr std::chrono::microseconds SPIN_TIME{1000};

    static void spin_wait(int n_spins) {
        if (n_spins < 256) {
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

    struct Workers {
        int64_t process = process_number();
        std::vector<std::thread> threads;
        // The present loop. `ticket` is its number (upper half) and how many items nobody has taken yet: the last one
        // goes first. Nothing else changes before all items are done.
        std::atomic<uint64_t> ticket{0};
        std::atomic<int> n_done{0}, n_threads{0};
        std::atomic<bool> is_over{false};
        Call call = nullptr;
        void* context = nullptr;
        std::exception_ptr failure;   // the first one of the loop
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
                try {
                    call(context, static_cast<int>(seen & 0xffffffff) - 1, thread);
                } catch (...) {
                    std::lock_guard<std::mutex> lock(mutex);
                    if (!failure) failure = std::current_exception();
                }
                n_done.fetch_add(1, std::memory_order_release);
                seen = ticket.load(std::memory_order_acquire);
            }
        }

        // The number of the loop after `before`.
        uint64_t await(uint64_t before) {
            const auto until = std::chrono::steady_clock::now() + SPIN_TIME;
            for (int n_spins = 0; n_spins % 64 || std::chrono::steady_clock::now() < until; ++n_spins) {
                const uint64_t round = round_of(ticket.load(std::memory_order_acquire));
                if (round != before) return round;
                spin_wait(n_spins);
            }
            std::unique_lock<std::mutex> lock(mutex);
            posted.wait(lock, [&] { return round_of(ticket.load(std::memory_order_relaxed)) != before; });
            return round_of(ticket.load(std::memory_order_relaxed));
        }

        void serve(int thread, uint64_t before) {
            if (!prepare_throwing()) return;   // others take its items
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
            sigset_t all, before_all;
            sigfillset(&all);
            if (static_cast<int>(threads.size()) >= n || pthread_sigmask(SIG_SETMASK, &all, &before_all) != 0) return;
#endif
            const uint64_t before = round_of(ticket.load(std::memory_order_relaxed));
            try {
                while (static_cast<int>(threads.size()) < n) {
                    const int thread = static_cast<int>(threads.size()) + 1;
                    threads.emplace_back([this, thread, before] { serve(thread, before); });
                }
            } catch (const std::exception&) {
            }
#ifndef _WIN32
            pthread_sigmask(SIG_SETMASK, &before_all, nullptr);
#endif
        }
    };

    std::unique_ptr<Workers> workers_;

    // In the child of a fork there is nobody to join: forget the parent's workers without touching them.
    void forget_parent_workers() {
        if (workers_ && workers_->process != process_number()) static_cast<void>(workers_.release());
    }
};

}  // namespace tsgkit
