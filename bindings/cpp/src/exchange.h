// Between tensors of the API and those of the wire: what is sent of them, what comes back into
// them.
#ifndef MSLITE_SRC_EXCHANGE_H_
#define MSLITE_SRC_EXCHANGE_H_

#include <memory>
#include <string>
#include <vector>

#include "include/api/types.h"
#include "src/wire/session.h"

namespace mslite {
// A tensor of a model, without data; it gets memory from the session when it needs some.
mindspore::MSTensor EmptyTensor(const TensorInfo &info, const std::shared_ptr<Session> &session);
std::vector<mindspore::MSTensor> EmptyTensors(const std::vector<TensorInfo> &infos,
                                              const std::shared_ptr<Session> &session);

// What a request carries of tensors; `what` is what errors call them, as "input". Throws Failure
// (kLiteInputTensorError) for one that has no data, or not enough.
std::vector<Filled> Contents(const std::vector<mindspore::MSTensor> &tensors,
                             const std::string &what);

// Lets a tensor be a result.
void Bind(const Filled &result, mindspore::MSTensor *tensor);

// Copies a result into memory that the user gave for it. False when there is none, or not of that
// size: then the tensor is as it was.
bool CopyInto(const Filled &result, const mindspore::MSTensor &given);
}  // namespace mslite
#endif  // MSLITE_SRC_EXCHANGE_H_
