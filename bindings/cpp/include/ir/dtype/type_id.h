// The numbers of element types, unscoped; those of DataType (api/data_type.h), and complex ones.
#ifndef MINDSPORE_INCLUDE_IR_DTYPE_TYPE_ID_H
#define MINDSPORE_INCLUDE_IR_DTYPE_TYPE_ID_H

namespace mindspore {
enum TypeId : int {
  kTypeUnknown = 0,
  kObjectTypeString = 12,
  kObjectTypeList = 13,
  kObjectTypeTuple = 14,
  kObjectTypeTensorType = 17,
  kNumberTypeBegin = 29,
  kNumberTypeBool = 30,
  kNumberTypeInt = 31,
  kNumberTypeInt8 = 32,
  kNumberTypeInt16 = 33,
  kNumberTypeInt32 = 34,
  kNumberTypeInt64 = 35,
  kNumberTypeUInt = 36,
  kNumberTypeUInt8 = 37,
  kNumberTypeUInt16 = 38,
  kNumberTypeUInt32 = 39,
  kNumberTypeUInt64 = 40,
  kNumberTypeFloat = 41,
  kNumberTypeFloat16 = 42,
  kNumberTypeFloat32 = 43,
  kNumberTypeFloat64 = 44,
  kNumberTypeBFloat16 = 45,
  kNumberTypeComplex64 = 51,
  kNumberTypeComplex128 = 52,
};
}  // namespace mindspore
#endif  // MINDSPORE_INCLUDE_IR_DTYPE_TYPE_ID_H
