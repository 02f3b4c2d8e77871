package com.mindspore.config;

/**
 * What the elements of a tensor are. A model may have further types, such as bfloat16 (45), which
 * have no name here; the bytes of such tensors can be had all the same.
 */
public class DataType {
  /** One byte, 0 or 1. */
  public static final int kNumberTypeBool = 30;

  /** Taken for Int32. */
  public static final int kNumberTypeInt = 31;

  /** Signed, 1 byte. */
  public static final int kNumberTypeInt8 = 32;

  /** Signed, 2 bytes. */
  public static final int kNumberTypeInt16 = 33;

  /** Signed, 4 bytes. */
  public static final int kNumberTypeInt32 = 34;

  /** Signed, 8 bytes. */
  public static final int kNumberTypeInt64 = 35;

  /** Taken for UInt32. */
  public static final int kNumberTypeUInt = 36;

  /** Unsigned, 1 byte. */
  public static final int kNumberTypeUInt8 = 37;

  /** Unsigned, 2 bytes. */
  public static final int kNumberTypeUInt16 = 38;

  /** Unsigned, 4 bytes. */
  public static final int kNumberTypeUInt32 = 39;

  /** Unsigned, 8 bytes. */
  public static final int kNumberTypeUInt64 = 40;

  /** Taken for Float32. */
  public static final int kNumberTypeFloat = 41;

  /** IEEE half precision, 2 bytes. */
  public static final int kNumberTypeFloat16 = 42;

  /** IEEE single precision, 4 bytes. */
  public static final int kNumberTypeFloat32 = 43;

  /** IEEE double precision, 8 bytes. */
  public static final int kNumberTypeFloat64 = 44;

  /** Nobody needs one; it is there because the original has it. */
  public DataType() {}
}
