// One loop over independent items on several threads. Which thread takes which item is not determined, so an item's
// result must not depend on it.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

namespace tsgkit {

// Calls work(item, thread) for every item below n_items; threads are numbered from 0.
template <class Work>
void parallel_for(int n_threads, int n_items, Work work) {
    if (n_threads <= 1 || n_items <= 1) {
        for (int item = 0; item < n_items; ++item) work(item, 0);
        return;
    }
    std::atomic<int> next(0);
    const auto run = [&](int thread) {
        for (int item = next++; item < n_items; item = next++) work(item, thread);
    };
    std::vector<std::thread> threads;
    for (int thread = 1; thread < n_threads; ++thread) threads.emplace_back(run, thread);
    run(0);
    for (std::thread& thread : threads) thread.join();
}

}  // namespace tsgkit
