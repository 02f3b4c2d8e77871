package com.mindspore.internal;

import com.mindspore.check.Check;

/** Tests of Half. */
public final class HalfTest {
  private HalfTest() {}

  public static void everyHalfComesBackAsItWas() {
    for (int bits = 0; bits < 0x10000; ++bits) {
      short half = (short) bits;
      float number = Half.toFloat(half);
      int wanted = Float.isNaN(number) ? bits | 0x200 : bits; // NaNs become quiet
      if ((Half.of(number) & 0xffff) != wanted) {
        Check.equal(Integer.toHexString(wanted), Integer.toHexString(Half.of(number) & 0xffff));
      }
    }
  }

  public static void everyHalfHasTheValueOfItsParts() {
    for (int bits = 0; bits < 0x7c00; ++bits) {
      int exponent = bits >> 10;
      int fraction = bits & 0x3ff;
      double wanted =
          exponent == 0 ? fraction * 0x1p-24 : Math.scalb(1024 + fraction, exponent - 25);
      if (Half.toFloat((short) bits) != wanted
          || Half.toFloat((short) (bits | 0x8000)) != -wanted) {
        Check.equal(wanted, (double) Half.toFloat((short) bits));
      }
    }
    Check.equal(Float.POSITIVE_INFINITY, Half.toFloat((short) 0x7c00));
    Check.equal(Float.NEGATIVE_INFINITY, Half.toFloat((short) 0xfc00));
    Check.that(Float.isNaN(Half.toFloat((short) 0x7e01)), "0x7e01 is not a number");
  }

  public static void whatLiesBetweenTwoHalvesGoesToTheNearestOfTwoToTheEvenOne() {
    for (int low = 0; low < 0x7c00; ++low) {
      float from = Half.toFloat((short) low);
      // beyond the largest finite one comes 2^16, which is infinite
      float to = low == 0x7bff ? 0x1p16f : Half.toFloat((short) (low + 1));
      float middle = from + (to - from) / 2; // exact
      int even = low % 2 == 0 ? low : low + 1;
      boolean isRight = Half.of(middle) == even && Half.of(Math.nextDown(middle)) == low
          && Half.of(Math.nextUp(middle)) == low + 1 && Half.of(-middle) == (short) (even | 0x8000);
      if (!isRight) {
        Check.that(false, "between " + from + " and " + to + ": " + Half.of(middle));
      }
    }
  }

  public static void whatIsTooLargeBecomesInfiniteAndWhatIsTooSmallZero() {
    Check.equal((short) 0x7bff, Half.of(65504));
    Check.equal((short) 0x7bff, Half.of(65519.996f));
    Check.equal((short) 0x7c00, Half.of(65520));
    Check.equal((short) 0xfc00, Half.of(-Float.MAX_VALUE));
    Check.equal((short) 0, Half.of(0x1p-25f));
    Check.equal((short) 0x8000, Half.of(-Float.MIN_VALUE));
    Check.equal((short) 0x8000, Half.of(-0f));
    Check.equal((short) 0x7e00, Half.of(Float.NaN));
  }
}
