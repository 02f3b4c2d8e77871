// Which blocks are made, kept and freed.
#include "src/wire/pool.h"

#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/failure.h"
#include "src/wire/errors.h"
#include "tests/check.h"
#include "tests/fake_worker.h"

namespace {
using mslite::Block;
using mslite::Pool;
using mslite_test::SharedFile;

constexpr uint64_t kSession = 7;
constexpr uint64_t kMiB = 1 << 20;

mslite::LaneLife Open() { return std::make_shared<std::atomic<bool>>(true); }

// What the "worker" has.
struct Books {
  std::vector<uint64_t> made;   // sizes
  std::vector<uint32_t> freed;  // numbers
  bool is_full = false;
  mslite::LaneLife life = Open();
};

class FakeSource : public mslite::BlockSource {
 public:
  explicit FakeSource(Books *books) : BlockSource(nullptr), books_(books) {}

  std::unique_ptr<Block> Make(uint64_t size, int64_t) override {
    if (books_->is_full) throw mslite::ResourceFailure("it is full");
    books_->made.push_back(size);
    const SharedFile file(size);
    return std::unique_ptr<Block>(new Block(static_cast<uint32_t>(getpid()),
                                            file.made(static_cast<uint32_t>(books_->made.size())),
                                            kSession, books_->life));
  }
  void Free(const std::vector<uint32_t> &numbers) override {
    books_->freed.insert(books_->freed.end(), numbers.begin(), numbers.end());
  }

 private:
  Books *books_;
};

std::shared_ptr<Pool> PoolOf(Books *books) {
  std::unique_ptr<mslite::BlockSource> source(new FakeSource(books));
  const auto pool = std::make_shared<Pool>(std::move(source), kSession);
  pool->AddModel();
  return pool;
}

TEST(SizesAreRoundedSoThatTheyAreNotOutgrownAtOnce) {
  CHECK_EQ(Pool::Rounded(1), 1u << 16);
  CHECK_EQ(Pool::Rounded(1 << 16), 1u << 16);
  CHECK_EQ(Pool::Rounded((1 << 16) + 1), 2u << 16);
  CHECK_EQ(Pool::Rounded(8 * kMiB + 1), 9 * kMiB);
  CHECK_EQ(Pool::Rounded(mslite::kMaxBlock), mslite::kMaxBlock);
}

TEST(ABlockThatCameBackIsHandedOutAgain) {
  Books books;
  const auto pool = PoolOf(&books);
  const auto number = pool->Take(100)->number();
  CHECK_EQ(pool->idle(), 1u);
  CHECK_EQ(pool->Take(60000)->number(), number);
  CHECK_EQ(books.made.size(), 1u);
}

TEST(TheSmallestBlockThatFitsIsTakenUnlessItIsTooLarge) {
  Books books;
  const auto pool = PoolOf(&books);
  {
    const auto large = pool->Take(1600 << 10);
    const auto medium = pool->Take(1 << 20);
    const auto small = pool->Take(1 << 16);
  }
  CHECK_EQ(pool->Take(900 << 10)->size(), kMiB);
  CHECK_EQ(pool->Take(1 << 10)->size(), 1u << 16);
  CHECK_EQ(books.made.size(), 3u);
  pool->Take(300 << 10);  // 1 MiB would be more than twice as much
  CHECK_EQ(books.made.size(), 4u);
}

TEST(TheLeastRecentlyUsedGoWhenManyAndMuchAreIdle) {
  Books books;
  const auto pool = PoolOf(&books);
  {
    std::vector<std::shared_ptr<Block>> few;
    for (int i = 0; i < 8; ++i) few.push_back(pool->Take(16 * kMiB));
  }
  CHECK_EQ(pool->idle(), 8u);  // 128 MiB, but no more than eight
  CHECK(books.freed.empty());
  const auto last = pool->Take(100)->number();
  CHECK_EQ(pool->idle(), 8u);
  CHECK_EQ(books.freed.size(), 1u);
  CHECK(books.freed[0] != last);
}

TEST(ManySmallBlocksAreKept) {
  Books books;
  const auto pool = PoolOf(&books);
  {
    std::vector<std::shared_ptr<Block>> many;
    for (int i = 0; i < 100; ++i) many.push_back(pool->Take(100));
  }
  CHECK_EQ(pool->idle(), 100u);
  pool->DropIdle();
  CHECK_EQ(pool->idle(), 0u);
  CHECK_EQ(books.freed.size(), 100u);
}

TEST(WithTheLastModelGoesWhatIsKeptAndWhatComesBackLater) {
  Books books;
  const auto pool = PoolOf(&books);
  pool->AddModel();
  auto late = pool->Take(100);
  pool->Take(100);
  pool->RemoveModel();
  CHECK_EQ(pool->idle(), 1u);
  pool->RemoveModel();
  late.reset();
  CHECK_EQ(pool->idle(), 0u);
  CHECK_EQ(books.freed.size(), 2u);
}

TEST(ACondemnedBlockIsNeverHandedOutAgain) {
  Books books;
  const auto pool = PoolOf(&books);
  pool->Take(100)->Condemn();
  CHECK_EQ(books.freed, (std::vector<uint32_t>{1}));
  CHECK_EQ(pool->Take(100)->number(), 2u);
  pool->TakeOnce(100);
  CHECK_EQ(books.freed, (std::vector<uint32_t>{1, 3}));
}

TEST(ABlockWhoseLaneClosedIsNotUsedAgainNorFreed) {
  Books books;
  const auto pool = PoolOf(&books);
  pool->Take(100);
  books.life->store(false);
  books.life = Open();
  CHECK_EQ(pool->Take(100)->number(), 2u);
  pool->DropIdle();
  CHECK_EQ(books.freed, (std::vector<uint32_t>{2}));
}

TEST(ThereAreNoMoreBlocksThanASessionMayHave) {
  Books books;
  const auto pool = PoolOf(&books);
  std::vector<std::shared_ptr<Block>> all;
  for (size_t i = 0; i < Pool::kMaxBlocks; ++i) {
    // as if the worker had made them: this process has not so many files
    const SharedFile file(64);
    all.push_back(pool->Adopt(std::unique_ptr<Block>(
        new Block(static_cast<uint32_t>(getpid()), file.made(9), kSession, books.life))));
  }
  CHECK(pool->Take(100) == nullptr);
  all.pop_back();
  CHECK(pool->Take(100) != nullptr);  // the idle one makes room
}

TEST(WhatIsKeptForLaterGoesWhenMemoryIsShort) {
  Books books;
  const auto pool = PoolOf(&books);
  pool->Take(100);
  books.is_full = true;
  CHECK(pool->Take(kMiB) == nullptr);
  CHECK_EQ(pool->idle(), 0u);
  CHECK_EQ(books.freed.size(), 1u);
  CHECK(pool->Take(mslite::kMaxBlock + 1) == nullptr);
}

TEST(ABlockMayOutliveThePool) {
  Books books;
  auto pool = PoolOf(&books);
  const auto block = pool->Take(100);
  pool.reset();
  block->data()[0] = 1;
}

TEST(BlocksComeBackFromManyThreads) {
  Books books;
  const auto pool = PoolOf(&books);
  mslite_test::Threads threads;
  for (int i = 0; i < 8; ++i) {
    threads.Start([&pool, i] {
      for (int j = 0; j < 200; ++j) {
        const auto block = pool->Take(static_cast<uint64_t>(1 + (i + j) % 3) << 16);
        block->data()[0] = static_cast<uint8_t>(j);
      }
    });
  }
  threads.Join();
  CHECK(pool->idle() <= 24);
}

TEST(OnlyMemoryThatIsSealedAndOfTheRightSizeIsMapped) {
  const auto open = [](const mslite::Made &made) {
    Block(static_cast<uint32_t>(getpid()), made, kSession, Open());
  };
  const SharedFile sealed(4096);
  open(sealed.made(1));
  CHECK_THROWS(open(sealed.made(0)), mslite::Failure);
  const SharedFile loose(4096, false);
  CHECK_THROWS(open(loose.made(1)), mslite::Failure);
  mslite::Made wrong = sealed.made(1);
  for (const uint64_t size : {uint64_t{0}, uint64_t{8192}, mslite::kMaxBlock + 1}) {
    wrong.size = size;
    CHECK_THROWS(open(wrong), mslite::Failure);
  }
  wrong = sealed.made(1);
  wrong.descriptor = 0;  // no memory at all
  CHECK_THROWS(open(wrong), mslite::Failure);
  wrong.descriptor = 1 << 30;
  CHECK_THROWS(open(wrong), mslite::Failure);
}
}  // namespace
