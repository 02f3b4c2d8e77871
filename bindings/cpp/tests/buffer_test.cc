#include <cstring>

#include "include/api/types.h"
#include "tests/check.h"

using mindspore::Buffer;

TEST(ABufferHoldsACopyOfWhatItWasGiven) {
  char bytes[] = "abc";
  Buffer buffer(bytes, 3);
  bytes[0] = 'x';
  CHECK_EQ(buffer.DataSize(), size_t{3});
  CHECK_EQ(std::memcmp(buffer.Data(), "abc", 3), 0);
}

TEST(CopiesOfABufferAreTheSameBytesAndACloneIsNot) {
  Buffer buffer("abc", 3);
  Buffer copy = buffer;
  const Buffer clone = buffer.Clone();
  static_cast<char *>(copy.MutableData())[0] = 'x';
  CHECK_EQ(std::memcmp(buffer.Data(), "xbc", 3), 0);
  CHECK_EQ(std::memcmp(clone.Data(), "abc", 3), 0);
}

TEST(ABufferGrowsByZerosAndShrinks) {
  Buffer buffer("abc", 3);
  CHECK(buffer.ResizeData(5));
  CHECK_EQ(std::memcmp(buffer.Data(), "abc\0\0", 5), 0);
  CHECK(buffer.ResizeData(1));
  CHECK_EQ(buffer.DataSize(), size_t{1});
  CHECK(buffer.SetData(nullptr, 0));
  CHECK_EQ(buffer.DataSize(), size_t{0});
}

TEST(ABufferTakesAPartOfItself) {
  Buffer buffer("abcdef", 6);
  CHECK(buffer.SetData(static_cast<const char *>(buffer.Data()) + 2, 3));
  CHECK_EQ(buffer.DataSize(), size_t{3});
  CHECK_EQ(std::memcmp(buffer.Data(), "cde", 3), 0);
}

TEST(ABufferThatCannotGrowStaysAsItWas) {
  Buffer buffer("abc", 3);
  CHECK(!buffer.ResizeData(static_cast<size_t>(-1)));
  CHECK(!buffer.SetData(nullptr, 3));
  CHECK_EQ(buffer.DataSize(), size_t{3});
  CHECK_EQ(std::memcmp(buffer.Data(), "abc", 3), 0);
  CHECK_EQ(Buffer(nullptr, 3).DataSize(), size_t{0});
  CHECK_EQ(Buffer().DataSize(), size_t{0});
}
