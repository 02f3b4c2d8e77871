package com.mindspore.internal;

/** IEEE half precision numbers, as the 16 bits they are; Java 17 has nothing for them. */
public final class Half {
  private static final int INFINITY = 0x7c00;
  private static final int QUIET = 0x0200; // a NaN that has it does not trap

  private Half() {}

  /** The number that these bits are; exact. */
  public static float toFloat(short half) {
    int sign = (half & 0x8000) << 16;
    int exponent = (half >>> 10) & 0x1f;
    int fraction = half & 0x3ff;
    if (exponent == 0x1f) { // infinite, or not a number
      return Float.intBitsToFloat(sign | 0x7f800000 | fraction << 13);
    }
    if (exponent == 0) { // zero and subnormals: so many times 2^-24, which a float has exactly
      float magnitude = fraction * 0x1p-24f;
      return Float.intBitsToFloat(sign | Float.floatToRawIntBits(magnitude));
    }
    return Float.intBitsToFloat(sign | (exponent + 127 - 15) << 23 | fraction << 13);
  }

  /** The nearest one, of two the even one; what is too large becomes infinite. */
  public static short of(float number) {
    int bits = Float.floatToRawIntBits(number);
    int sign = bits >>> 16 & 0x8000;
    int magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) { // NaN: the top of what it carries stays
      return (short) (sign | INFINITY | QUIET | magnitude >>> 13 & 0x3ff);
    }
    if (magnitude >= 0x47800000) { // from 2^16 on
      return (short) (sign | INFINITY);
    }
    if (magnitude < 0x38800000) { // below 2^-14: a multiple of 2^-24
      // Adding a half puts that multiple into the lowest bits of the sum, rounded by the hardware.
      float sum = Float.intBitsToFloat(magnitude) + 0.5f;
      return (short) (sign | Float.floatToRawIntBits(sum) - 0x3f000000);
    }
    int isOdd = magnitude >>> 13 & 1; // rounding may carry into the exponent, up to infinity: right
    int rounded = magnitude - ((127 - 15) << 23) + 0xfff + isOdd;
    return (short) (sign | rounded >>> 13);
  }
}
